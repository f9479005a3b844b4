#include "convert/convert.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/byte_size.h"
#include "base/files.h"
#include "convert/cast.h"
#include "convert/journal.h"
#include "convert/program.h"
#include "convert/rules.h"
#include "convert/target.h"
#include "formats/paddle_program.h"
#include "runtime/execute.h"

namespace paddle::convert {
namespace {

constexpr uint64_t kDefaultShard = 5'000'000'000;  // as Hugging Face's tools have it

/// The conversion of one tensor.
struct Planned {
  size_t source = 0;
  StoredTensor before, after;
  std::vector<int64_t> perm;  ///< empty: not transposed
};

struct DtypeChoice {
  std::string pattern;  ///< empty: all tensors of the type's kind
  DType dtype;
  const formats::gguf::BlockType* blocks = nullptr;
};

std::vector<DtypeChoice> read_dtypes(const std::vector<std::string>& given, Format target) {
  std::vector<DtypeChoice> out;
  for (const std::string& text : given) {
    const size_t equals = text.rfind('=');
    const std::string name = equals == std::string::npos ? text : text.substr(equals + 1);
    const auto* blocks = formats::gguf::find_block_type(name);
    if (blocks && target != Format::kGguf)
      fail(ErrorCode::kUsage, "--dtype: only GGUF files have ", name);
    const auto dtype = blocks ? DType::kF32 : parse_dtype(name);
    if (!dtype || *dtype == DType::kString) {
      std::vector<std::string> names = dtype_names();
      if (target == Format::kGguf)
        for (const std::string& each : formats::gguf::block_type_names()) names.push_back(each);
      fail(ErrorCode::kUsage, "--dtype: there is no element type '", name, "'",
           did_you_mean(name, names));
    }
    if (equals == 0) fail(ErrorCode::kUsage, "--dtype: the pattern of '", text, "' is empty");
    out.push_back({equals == std::string::npos ? "" : text.substr(0, equals), *dtype, blocks});
  }
  return out;
}

/// Whether a type of blocks is for a tensor that no pattern names: matrices whose rows are whole
/// blocks. Vectors keep their type, as in the files of others.
bool takes_blocks(const StoredTensor& tensor, const formats::gguf::BlockType& blocks) {
  return tensor.shape.size() >= 2 && tensor.shape.back() % blocks.values == 0;
}

const char* format_name(Format format) {
  return format == Format::kNpz ? "NPZ" : format == Format::kGguf ? "GGUF" : "safetensors";
}

bool same_kind(DType a, DType b) {
  return is_integer(a) ? is_integer(b) : info(a).kind == info(b).kind;
}

bool fits_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return matches_pattern(p, name); });
}

/// A pattern that fits nothing is a typing error.
void check_patterns(const char* option, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names) {
  for (const std::string& p : patterns)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& n) { return matches_pattern(p, n); }))
      fail(ErrorCode::kUsage, option, ": '", p, "' matches no tensor", did_you_mean(p, names));
}

std::vector<Planned> plan_tensors(const Options& options, const Source& source,
                                  const Printer& printer) {
  std::vector<std::string> names;
  for (const StoredTensor& t : source.tensors()) names.push_back(t.name);
  check_patterns("--only", options.only, names);
  check_patterns("--exclude", options.exclude, names);
  std::optional<Rules> rules;
  if (!options.rules.empty()) rules = Rules::read(options.rules);
  std::vector<Planned> plan;
  for (size_t i = 0; i < names.size(); ++i) {
    const StoredTensor& t = source.tensors()[i];
    if (!options.only.empty() && !fits_any(options.only, t.name)) continue;
    if (fits_any(options.exclude, t.name)) continue;
    Planned p{i, t, t, {}};
    if (rules) {
      const Rules::Outcome rule = rules->apply(t.name);
      if (rule.dropped) continue;
      p.after.name = rule.name;
      if (rule.transposed) {
        p.perm = axes_of(rule, t.name, t.dtype, t.shape);
        for (size_t d = 0; d < p.perm.size(); ++d)
          p.after.shape[d] = t.shape[static_cast<size_t>(p.perm[d])];
      }
    }
    plan.push_back(std::move(p));
  }
  if (rules)
    for (const std::string& line : rules->unused(names)) printer.warning(line);
  std::map<std::string, std::string> origins;
  for (const Planned& p : plan) {
    const auto [other, first] = origins.emplace(p.after.name, p.before.name);
    if (!first)
      fail(ErrorCode::kConfig, "'", other->second, "' and '", p.before.name,
           "' would both be called '", p.after.name, "'");
  }
  return plan;
}

/// Types by what is asked for and what the target has.
void plan_types(const Options& options, Format target, std::vector<Planned>& plan) {
  const auto choices = read_dtypes(options.dtypes, target);
  std::vector<std::string> names;
  for (const Planned& p : plan) names.push_back(p.after.name);
  for (const DtypeChoice& c : choices)
    if (!c.pattern.empty()) check_patterns("--dtype", {c.pattern}, names);
  std::vector<std::string> impossible;
  DType first = DType::kF32;
  for (Planned& p : plan) {
    for (const DtypeChoice& c : choices) {
      if (!(c.pattern.empty() ? same_kind(c.dtype, p.before.dtype)
                              : matches_pattern(c.pattern, p.after.name)))
        continue;
      if (c.blocks && c.pattern.empty() && !takes_blocks(p.after, *c.blocks)) continue;
      p.after.dtype = c.dtype;
      p.after.blocks = c.blocks;
    }
    if (!can_hold(target, p.after.dtype) && options.allow_loss)
      p.after.dtype = wider_type(target, p.after.dtype);
    if (can_hold(target, p.after.dtype)) continue;
    if (impossible.empty()) first = p.after.dtype;
    impossible.push_back(p.after.name);
  }
  if (impossible.empty()) return;
  const DType wider = wider_type(target, first);
  fail(ErrorCode::kUsage, format_name(target), " has no type for ", text(first), " ('",
       impossible[0], "'",
       impossible.size() > 1 ? str(" and ", impossible.size() - 1, " more") : "",
       "); choose another type with --dtype",
       wider == first ? ""
                      : str(" (--allow-loss writes ", text(wider), ", which keeps the values)"));
}

/// Losses of the casts between two types, over all tensors.
struct Losses {
  CastLoss loss;
  int64_t tensors = 0;
  std::string first_overflow;
};
using LossTable = std::map<std::pair<DType, DType>, Losses>;

void report(const LossTable& table, const Printer& printer) {
  for (const auto& [types, l] : table) {
    const auto& [from, to] = types;
    const std::string head = str(text(from), " → ", text(to), ": ");
    if (l.loss.changed == 0)
      printer.line(str(head, l.tensors, l.tensors == 1 ? " tensor" : " tensors", ", exactly"));
    else
      printer.line(str(head, l.tensors, l.tensors == 1 ? " tensor, " : " tensors, ",
                       l.loss.changed - l.loss.overflow, " of ", l.loss.values, " values rounded"));
    if (l.loss.overflow > 0)
      printer.warning(str(head, l.loss.overflow, l.loss.overflow == 1 ? " value is" : " values are",
                          " out of the range of ", text(to), " (first in '", l.first_overflow,
                          "')"));
  }
}

void write(const TargetOptions& target_options, const Source& source,
           const std::vector<Planned>& plan, const Printer& printer) {
  std::vector<StoredTensor> tensors;
  for (const Planned& p : plan) tensors.push_back(p.after);
  const auto target = open_target(target_options, tensors);
  LossTable losses;
  for (const size_t i : target->order()) {
    if (printer.should_stop && printer.should_stop()) throw Interrupted(target_options.journal);
    const Planned& p = plan[i];
    const Array stored = source.read(p.source);
    Array array = p.perm.empty() ? stored : transposed(stored, p.perm);
    if (p.after.dtype != array.dtype) {
      Losses& l = losses[{p.before.dtype, p.after.dtype}];
      const int64_t before = l.loss.overflow;
      array = cast_counting(array, p.after.dtype, l.loss);
      if (before == 0 && l.loss.overflow > 0) l.first_overflow = p.after.name;
      ++l.tensors;
    }
    target->add(p.after, array);
    forget_mapped(stored.storage->data(), stored.storage->bytes());
  }
  target->close();
  report(losses, printer);
  std::map<std::string, int64_t> quantized;
  for (const Planned& p : plan)
    if (p.after.blocks) ++quantized[p.after.blocks->name];
  for (const auto& [name, count] : quantized)
    printer.line(str(count, count == 1 ? " tensor" : " tensors", " quantized to ", name));
}

/// Everything that decides what is in the shards of a conversion.
std::string settings_of(const Options& options, const TargetOptions& target,
                        const std::vector<Planned>& plan) {
  std::string out = str(state_of_input(options.in), target.shard_bytes, "\n");
  for (const auto& [key, value] : target.metadata) out += str(key, "=", value, "\n");
  for (const Planned& p : plan)
    out += str(p.before.name, " ", text(p.before.dtype), p.before.shape, " ", p.after.name, " ",
               text(p.after.dtype), p.after.shape, " ", p.perm, "\n");
  return out;
}

std::string type_text(const StoredTensor& t) {
  return (t.blocks ? std::string(t.blocks->name) : text(t.dtype)) + str(t.shape);
}

void list(const std::vector<Planned>& plan, const Printer& printer) {
  size_t width = 0;
  for (const Planned& p : plan) width = std::max(width, std::min<size_t>(p.before.name.size(), 48));
  for (const Planned& p : plan) {
    std::string line = p.before.name;
    if (line.size() < width) line.resize(width, ' ');
    if (p.after.name != p.before.name) line += " → " + p.after.name;
    line += "  " + type_text(p.before);
    if (p.after.dtype != p.before.dtype || p.after.blocks || p.after.shape != p.before.shape)
      line += " → " + type_text(p.after);
    printer.line(str(line, "  ", p.after.bytes(), " bytes"));
  }
}

}  // namespace

uint64_t parse_size(const std::string& given) {
  const auto size = parse_byte_size(given);
  if (!size)
    fail(ErrorCode::kUsage, "--shard-size: expected a size such as 2GB or 500MiB, found '", given,
         "'");
  return *size;
}

Summary run(const Options& options, const Printer& printer) {
  runtime::register_backends();
  if (options.from.empty() && options.out.ends_with(".onnx") &&
      formats::is_paddle_program(options.in))
    return convert_program(options, printer);
  const Format from = input_format(options.in, options.from);
  TargetOptions target{.path = options.out,
                       .format = format_of(options.out, options.to),
                       .shard_bytes = kDefaultShard,
                       .metadata = {}};
  if (target.format >= Format::kOnnx)
    fail(ErrorCode::kUsage, options.out, ": files of the format '", text(target.format),
         "' are read, not written; write safetensors or NPZ");
  if (!options.shard_size.empty()) {
    if (target.format != Format::kSafetensors && target.format != Format::kSharded)
      fail(ErrorCode::kUsage, "--shard-size is for safetensors");
    target.format = Format::kSharded;
    target.shard_bytes = parse_size(options.shard_size);
  }
  const auto source = open_source(options.in, from);
  if (source->tensors().empty())
    fail(ErrorCode::kModel, options.in, ": holds no tensors",
         source->notes().empty() ? "" : str(" (", source->notes()[0], ")"));
  target.metadata = source->metadata();
  for (const std::string& note : source->notes()) printer.warning(note);
  std::vector<Planned> plan = plan_tensors(options, *source, printer);
  plan_types(options, target.format, plan);
  std::vector<StoredTensor> tensors;
  uint64_t bytes = 0;
  for (const Planned& p : plan) {
    tensors.push_back(p.after);
    bytes += p.after.bytes();
  }
  if (target.format == Format::kFolder) check_folder(target.path, tensors);
  const auto files = target_files(target, tensors);
  if (target.format == Format::kNpz && !target.metadata.empty())
    printer.warning(str("NPZ has no place for the metadata (", target.metadata.size(),
                        target.metadata.size() == 1 ? " entry)" : " entries)"));
  const Summary result{
      .output = files.back(), .tensors = static_cast<int64_t>(plan.size()), .bytes = bytes};
  const std::string summary =
      str(plan.size(), plan.size() == 1 ? " tensor, " : " tensors, ", human_bytes(bytes));
  if (options.dry_run) {
    list(plan, printer);
    printer.line(str(summary, "; nothing is written"));
    return result;
  }
  for (const std::string& file : files)
    if (file_exists(file) && !options.overwrite)
      fail(ErrorCode::kUsage, file, ": already exists; --overwrite replaces it");
  std::optional<Journal> journal;
  if (target.format == Format::kSharded) {
    journal.emplace(files.back(), settings_of(options, target, plan));
    const std::vector<std::string> shards(files.begin(), files.end() - 1);
    target.journal = &*journal;
    if (options.resume) target.finished = journal->finished(shards);
    if (options.resume && journal->is_of_other_settings())
      printer.warning("the input or the settings have changed: all shards are written again");
    if (target.finished > 0)
      printer.line(str(target.finished, " of ", shards.size(), " shards are there"));
  } else if (options.resume) {
    fail(ErrorCode::kUsage, "--resume continues with the shards that are there; ", options.out,
         " is one file");
  }
  if (const uint64_t space = free_space(files[0]); bytes > space)
    fail(ErrorCode::kDevice, "cannot write '", files[0], "': it needs ", human_bytes(bytes),
         ", the disk has ", human_bytes(space), " left");
  write(target, *source, plan, printer);
  printer.line(str(summary, "; written to ", files.back(),
                   files.size() > 1 ? str(" and ", files.size() - 1, " shards") : ""));
  return result;
}

}  // namespace paddle::convert
