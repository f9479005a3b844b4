#include "plugin/added_kinds.h"

#include "config/kind_keys.h"
#include "plugin/stream_adapter.h"

namespace paddle::plugin {
namespace {

constexpr uint32_t kMaxKinds = 64;

/// The keys of all tables and of all readers.
const std::vector<std::string> kTableKeys = {"kind",       "store", "entry",
                                             "statistics", "score", "evict"};
const std::vector<std::string> kReaderKeys = {
    "kind",       "range",          "split",        "part",       "split_in_order",
    "split_seed", "split_stratify", "split_group",  "split_time", "folds",
    "fold",       "weight",         "epoch_samples"};

std::string label_of(const Parts& parts) {
  return parts.plugin.provider.name + " " + parts.plugin.provider.version;
}

std::string full_name(const Parts& parts, const char* name) {
  return parts.plugin.provider.name + "." + name;
}

const char* doc_of(const char* doc) { return doc ? doc : ""; }

/// The words of the descriptors that were read.
template <class Contexts>
std::vector<std::string> words(const Contexts& contexts) {
  std::vector<std::string> out;
  for (const auto& context : contexts) out.emplace_back(context.functions.name);
  return out;
}

}  // namespace

void read_transports(const Descriptors& d, const paddle_plugin& given, const std::string& file,
                     Parts& parts) {
  if (given.transport_count > kMaxKinds) d.reject(str("more than ", kMaxKinds, " transports"));
  for (uint32_t i = 0; i < given.transport_count; ++i) {
    const paddle_transport t = known_part(
        d.item(given.transports, i, "transport", PADDLE_END_OF(paddle_transport, close)));
    d.check_word("transport", i, t.name, words(parts.transports));
    if (!t.open || !t.exchange || !t.post || !t.take || !t.abort || !t.close)
      d.reject(
          str("transport ", t.name, ": open, exchange, post, take, abort and close must be set"));
    parts.transports.push_back(
        {label_of(parts), full_name(parts, t.name), t,
         config::read_kind_keys(t.keys, str(file, ":transports: ", t.name), {"kind"})});
  }
}

void read_tables(const Descriptors& d, const paddle_plugin& given, const std::string& file,
                 Parts& parts) {
  if (given.table_count > kMaxKinds) d.reject(str("more than ", kMaxKinds, " tables"));
  for (uint32_t i = 0; i < given.table_count; ++i) {
    const paddle_table t =
        known_part(d.item(given.tables, i, "table", PADDLE_END_OF(paddle_table, close)));
    d.check_word("table", i, t.name, words(parts.tables));
    if (!t.open || !t.count || !t.read || !t.update || !t.content || !t.restore || !t.close)
      d.reject(str("table ", t.name,
                   ": open, count, read, update, content, restore and close must be set"));
    parts.tables.push_back(
        {label_of(parts), full_name(parts, t.name), t,
         config::read_kind_keys(t.keys, str(file, ":tables: ", t.name), kTableKeys)});
  }
}

void read_readers(const Descriptors& d, const paddle_plugin& given, const std::string& file,
                  Parts& parts) {
  if (given.reader_count > kMaxKinds) d.reject(str("more than ", kMaxKinds, " readers"));
  for (uint32_t i = 0; i < given.reader_count; ++i) {
    const paddle_reader r =
        known_part(d.item(given.readers, i, "reader", PADDLE_END_OF(paddle_reader, close)));
    d.check_word("reader", i, r.name, words(parts.readers));
    if (!r.open || !r.describe || !r.close || (!r.next && (!r.size || !r.read)))
      d.reject(str("reader ", r.name,
                   ": open, describe, size and read, or next, and close must be set"));
    if (r.next && r.read)
      d.reject(str("reader ", r.name, ": has read and next, expected one of them"));
    if (!r.position != !r.seek)
      d.reject(str("reader ", r.name, ": position and seek: both must be set, or none"));
    parts.readers.push_back(
        {label_of(parts), full_name(parts, r.name), r,
         config::read_kind_keys(r.keys, str(file, ":readers: ", r.name), kReaderKeys)});
  }
}

void read_compilers(const Descriptors& d, const paddle_plugin& given, Parts& parts) {
  if (given.compiler_count > kMaxKinds) d.reject(str("more than ", kMaxKinds, " compilers"));
  for (uint32_t i = 0; i < given.compiler_count; ++i) {
    const paddle_compiler c =
        known_part(d.item(given.compilers, i, "compiler", PADDLE_END_OF(paddle_compiler, compile)));
    d.check_word("compiler", i, c.name, words(parts.compilers));
    if (!c.supports || !c.compile)
      d.reject(str("compiler ", c.name, ": supports and compile must be set"));
    if (!c.serialize != !c.deserialize)
      d.reject(str("compiler ", c.name, ": serialize and deserialize: both must be set, or none"));
    const std::string device = is_empty(c.device) ? "cpu" : c.device;
    if (device != "cpu" && std::ranges::none_of(parts.devices, [&](const paddle_device_api* each) {
          return device == each->name;
        }))
      d.reject(str("compiler ", c.name, ": the plug-in has no device '", device, "'"));
    parts.compilers.push_back({label_of(parts), full_name(parts, c.name), c});
  }
}

void register_kinds(Parts& parts) {
  const SourceLocation where{parts.plugin.path};
  std::vector<comm::TransportKind> transports;
  for (const TransportContext& context : parts.transports)
    transports.push_back({context.name, doc_of(context.functions.doc),
                          [&context](comm::JoinedRank joined) {
                            return open_plugin_transport(context, std::move(joined));
                          },
                          context.keys});
  comm::transport_kinds().add(std::move(transports), where);
  std::vector<program::TableKind> tables;
  for (const TableContext& context : parts.tables)
    tables.push_back(
        {context.name, doc_of(context.functions.doc),
         [&context](program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                    uint64_t seed, const KindOptions& options) {
           return open_plugin_table(context, std::move(spec), std::move(rule), seed, options);
         },
         context.keys});
  program::table_kinds().add(std::move(tables), where);
  std::vector<data::DatasetKind> readers;
  for (const ReaderContext& context : parts.readers) readers.push_back(dataset_kind_of(context));
  data::dataset_kinds().add(std::move(readers), where);
  std::vector<compiler::RegionCompiler> compilers;
  for (const CompilerContext& context : parts.compilers)
    compilers.push_back(region_compiler_of(context));
  compiler::region_compilers().add(std::move(compilers), where);
}

}  // namespace paddle::plugin
