#include "conformance/exported.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "plugin/host.h"
#include "tables/record_table.h"

namespace paddle::conformance {
namespace {

// --- transports ---

/// The transport that the next `open` of this thread exports.
std::shared_ptr<comm::Transport>& to_export() {
  thread_local std::shared_ptr<comm::Transport> transport;
  return transport;
}

comm::Transport& transport_of(void* state) {
  return **static_cast<std::shared_ptr<comm::Transport>*>(state);
}

template <class Byte>
std::vector<std::span<Byte>> pieces_of(const paddle_message& message) {
  std::vector<std::span<Byte>> out;
  for (uint32_t i = 0; i < message.piece_count; ++i)
    out.emplace_back(static_cast<Byte*>(message.pieces[i]), message.sizes[i]);
  return out;
}

paddle_status exchange(void* state, paddle_call* call, uint32_t kind,
                       const paddle_message* const* sends, uint32_t send_count,
                       const paddle_message* const* receives, uint32_t receive_count) {
  return plugin::guarded(call, [&] {
    std::vector<std::vector<std::span<const std::byte>>> out;
    std::vector<std::vector<std::span<std::byte>>> in;
    for (uint32_t i = 0; i < send_count; ++i) out.push_back(pieces_of<const std::byte>(*sends[i]));
    for (uint32_t i = 0; i < receive_count; ++i) in.push_back(pieces_of<std::byte>(*receives[i]));
    std::vector<comm::Outgoing> outgoing;
    std::vector<comm::Incoming> incoming;
    for (uint32_t i = 0; i < send_count; ++i) outgoing.push_back({sends[i]->peer, out[i]});
    for (uint32_t i = 0; i < receive_count; ++i) incoming.push_back({receives[i]->peer, in[i]});
    transport_of(state).exchange(static_cast<comm::Exchange>(kind), outgoing, incoming);
  });
}

// --- tables ---

/// The records of the table in memory.
struct Records {
  explicit Records(const paddle_table_spec& given)
      : spec(given),
        table(given.dtype == PADDLE_FLOAT64 ? DType::kF64 : DType::kF32, given.width,
              given.state_count) {}
  const paddle_table_spec& spec;
  tables::RecordTable table;
};
Records& records_of(void* state) { return *static_cast<Records*>(state); }

paddle_status read(void* state, paddle_call*, const uint64_t* keys, size_t count, int32_t missing,
                   void* rows) {
  const Records& own = records_of(state);
  auto* to = static_cast<std::byte*>(rows);
  for (size_t i = 0; i < count; ++i, to += own.spec.row_bytes) {
    if (const std::byte* const record = own.table.find(keys[i]))
      std::memcpy(to, record, own.spec.row_bytes);
    else if (missing == PADDLE_MISSING_INITIAL)
      plugin::records_functions().initial_row(&own.spec, keys[i], to);
    else
      std::memset(to, 0, own.spec.row_bytes);
  }
  return PADDLE_OK;
}

paddle_status update(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                     const void* gradients, const void* inputs) {
  const Records& own = records_of(state);
  std::vector<void*> found;
  for (size_t i = 0; i < count; ++i) found.push_back(own.table.find(keys[i]));
  return plugin::records_functions().apply_update(&own.spec, call, found.data(), gradients, count,
                                                  inputs);
}

paddle_status content(void* state, paddle_call*, paddle_record_visitor visitor, void* context) {
  const Records& own = records_of(state);
  const bool is_signed = own.spec.key_dtype == PADDLE_INT64;
  std::map<uint64_t, std::pair<uint64_t, const void*>> sorted;
  for (int shard = 0; shard < tables::kShards; ++shard)
    own.table.for_each_sorted(shard, is_signed, [&](uint64_t key, const std::byte* record) {
      sorted[tables::ordered(key, is_signed)] = {key, record};
    });
  for (const auto& [order, found] : sorted)
    if (const paddle_status status = visitor(context, &found.first, &found.second, 1))
      return status;
  return PADDLE_OK;
}

paddle_status restore(void* state, paddle_call*, const uint64_t* keys, const void* records,
                      size_t count) {
  Records& own = records_of(state);
  for (size_t i = 0; i < count; ++i)
    if (!own.table.find(keys[i]))
      std::memcpy(own.table.insert(keys[i]),
                  static_cast<const std::byte*>(records) + i * own.spec.record_bytes,
                  own.spec.record_bytes);
  return PADDLE_OK;
}

}  // namespace

paddle_transport exported_transport_functions() {
  paddle_transport out{};
  out.struct_size = sizeof out;
  out.name = "exported";
  out.open = [](paddle_call*, const paddle_rank*, void** state) -> paddle_status {
    *state = new std::shared_ptr<comm::Transport>(std::move(to_export()));
    return PADDLE_OK;
  };
  out.exchange = exchange;
  out.post = [](void* state, paddle_call* call, int32_t peer, uint32_t tag, const void* bytes,
                size_t size) {
    return plugin::guarded(call, [&] {
      transport_of(state).isend(peer, tag, {static_cast<const std::byte*>(bytes), size});
    });
  };
  out.take = [](void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                size_t size) {
    return plugin::guarded(call, [&] {
      transport_of(state).recv(peer, tag, {static_cast<std::byte*>(bytes), size});
    });
  };
  out.abort = [](void* state, const char* reason) { transport_of(state).abort(reason); };
  out.close = [](void* state) { delete static_cast<std::shared_ptr<comm::Transport>*>(state); };
  out.can_overlap = [](void* state) -> int32_t { return transport_of(state).can_overlap(); };
  out.at_step = [](void* state, int64_t step) { transport_of(state).set_step(step); };
  return out;
}

comm::TransportKind transport_kind_of(const std::string& name, const std::string& engine_kind,
                                      const paddle_transport& functions) {
  static std::deque<plugin::TransportContext> contexts;  // transports refer to them
  const plugin::TransportContext& context =
      contexts.emplace_back(plugin::TransportContext{"exported 1.0.0", name, functions, {}});
  return {name, "", [&context, engine_kind](comm::JoinedRank joined) {
            comm::JoinedRank outer{.rank = joined.rank, .size = joined.size};
            outer.hosts = joined.hosts;
            outer.options = joined.options;
            outer.peers.resize(joined.peers.size());
            to_export() = comm::transport_kinds().find(engine_kind)->open(std::move(joined));
            return plugin::open_plugin_transport(context, std::move(outer));
          }};
}

paddle_table exported_table_functions() {
  paddle_table out{};
  out.struct_size = sizeof out;
  out.name = "exported";
  out.open = [](paddle_call*, const paddle_table_spec* spec, void** state) -> paddle_status {
    *state = new Records(*spec);
    return PADDLE_OK;
  };
  out.count = [](void* state) { return records_of(state).table.count(); };
  out.read = read;
  out.update = update;
  out.content = content;
  out.restore = restore;
  out.close = [](void* state) { delete static_cast<Records*>(state); };
  return out;
}

program::TableKind table_kind_of(const std::string& name, const paddle_table& functions) {
  static std::deque<plugin::TableContext> contexts;  // tables refer to them
  const plugin::TableContext& context =
      contexts.emplace_back(plugin::TableContext{"exported 1.0.0", name, functions, {}});
  return {name, "",
          [&context](program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                     uint64_t seed, const KindOptions& options) {
            return plugin::open_plugin_table(context, std::move(spec), std::move(rule), seed,
                                             options);
          }};
}

}  // namespace paddle::conformance
