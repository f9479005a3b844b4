#include "inspect/fuzz.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <utility>

#include "base/elapsed.h"
#include "base/text.h"
#include "inspect/both_modes.h"
#include "inspect/isolate.h"
#include "inspect/numeric.h"
#include "inspect/op_call.h"
#include "inspect/run_op.h"
#include "tensor/random.h"

namespace paddle::inspect {
namespace {

constexpr size_t kBatch = 256;

/// The choices of one call, from (seed, operation, index) only.
class Choices {
 public:
  Choices(const std::string& op, uint64_t seed, uint64_t index) {
    std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                        static_cast<uint32_t>(stream_of(op)), static_cast<uint32_t>(index),
                        static_cast<uint32_t>(index >> 32)};
    engine_.seed(words);
  }
  size_t below(size_t count) { return count == 0 ? 0 : engine_() % count; }
  bool chance(int percent) { return below(100) < static_cast<size_t>(percent); }
  std::string of(const std::vector<std::string>& words) { return words[below(words.size())]; }

 private:
  std::mt19937_64 engine_;
};

std::string size_word(Choices& c) {
  static const std::vector<std::string> sizes = {"0", "1", "1", "2", "2", "3", "3", "4", "5", "8"};
  return c.of(sizes);
}

std::string shape_word(Choices& c, const std::vector<std::string>& used) {
  // Shapes that occurred already, so that operands fit together now and then.
  if (!used.empty() && c.chance(60)) return c.of(used);
  std::vector<std::string> dims(c.below(c.chance(10) ? 8 : 5));
  for (std::string& dim : dims) dim = size_word(c);
  return join(dims, ",");
}

std::string dtype_word(Choices& c, const std::string& usual) {
  static const std::vector<std::string> dtypes = {"f32", "f64",  "f32", "f64",  "i64",
                                                  "i32", "bool", "f16", "bf16", "u8",
                                                  "i8",  "i16",  "c64", "c128"};
  return !usual.empty() && c.chance(70) ? usual : c.of(dtypes);
}

std::string integer_word(Choices& c) {
  static const std::vector<std::string> usual = {"0", "1", "2", "3", "-1", "-2", "4", "5", "8"};
  static const std::vector<std::string> rare = {"16",
                                                "-7",
                                                "100",
                                                "65536",
                                                "2147483647",
                                                "-2147483648",
                                                "4611686018427387904",
                                                "9223372036854775807",
                                                "-9223372036854775807"};
  return c.of(c.chance(85) ? usual : rare);
}

std::string float_word(Choices& c) {
  static const std::vector<std::string> usual = {"0", "1", "0.5", "-0.5", "2", "1e-5", "-1", "3.5"};
  static const std::vector<std::string> rare = {"inf", "-inf", "nan", "1e30", "-1e300", "1e-300"};
  return c.of(c.chance(85) ? usual : rare);
}

std::string list_word(Choices& c, const std::function<std::string()>& item) {
  std::vector<std::string> items(c.below(c.chance(10) ? 9 : 4));
  for (std::string& word : items) word = item();
  return "[" + join(items, ",") + "]";
}

std::string attribute_word(Choices& c, const AttrDef& def) {
  if (def.optional && c.chance(15)) return "none";
  const auto integer = [&] { return integer_word(c); };
  const auto number = [&] { return float_word(c); };
  switch (def.type) {
    case AttrType::kBool:
      return c.of({"true", "false"});
    case AttrType::kInt:
    case AttrType::kDim:
      return integer();
    case AttrType::kFloat:
    case AttrType::kNumber:
      return c.chance(70) ? number() : integer();
    case AttrType::kWord:
      return c.chance(90) ? c.of(split(def.words, '|')) : "nonsense";
    case AttrType::kDType:
      return c.of({"float32", "float64", "int64", "int32", "bool", "float16", "bfloat16",
                   "complex64", "uint8"});
    case AttrType::kString: {
      static const std::vector<std::string> words = {
          "relu",      "sum",  "mean",  "none",   "NCHW",     "NHWC",
          "constant",  "SAME", "VALID", "normal", "gamma",    "nonsense",
          "ij,jk->ik", "uv",   "left",  "hann",   "backward", "exp_transform"};
      return c.of(words);
    }
    case AttrType::kInts:
    case AttrType::kDims:
      return c.chance(85) ? list_word(c, integer) : integer();
    case AttrType::kFloats:
      return c.chance(85) ? list_word(c, number) : number();
    case AttrType::kStrings:
      return list_word(c, [&] { return c.of({"a", "relu", "nonsense"}); });
    case AttrType::kAny:
      break;
  }
  switch (c.below(6)) {
    case 0:
      return list_word(c, [&] { return list_word(c, integer); });
    case 1:
      return c.of({"SAME", "VALID", "none", "true", "nonsense"});
    case 2:
      return number();
    case 3:
      return list_word(c, integer);
    default:
      return integer();
  }
}

/// The tensor of a sample's word: "f64[2,3]{0,1}" is "f64" and "2,3", "i64(4,1)" is "i64" and "2".
struct TensorWord {
  std::string dtype, shape;
  bool known = false;
};

TensorWord read_tensor(const std::string& word) {
  static const std::regex pattern("([a-z]+[0-9]*)\\[([0-9,]*)\\].*"),
      numbers("([a-z]+[0-9]*)\\(([^()]*)\\)!?");
  std::smatch match;
  if (std::regex_match(word, match, pattern)) return {match[1], match[2], true};
  if (!std::regex_match(word, match, numbers)) return {};
  return {match[1], str(split(match[2].str(), ',').size()), true};
}

std::string tensor_word(Choices& c, const std::string& usual_dtype,
                        std::vector<std::string>& shapes) {
  const std::string dtype = dtype_word(c, usual_dtype), shape = shape_word(c, shapes);
  shapes.push_back(shape);
  std::string word = dtype + "[" + shape + "]";
  switch (c.below(6)) {
    case 0:
      return word + "{0,2}";
    case 1:
      return word + (dtype.starts_with("u") ? "{0,9}" : "{-9,9}");
    case 2:
      return word + "{0,0}";
    default:
      return word;
  }
}

std::string operand_word(Choices& c, const OperandDef& def, const std::string& usual_dtype,
                         std::vector<std::string>& shapes) {
  if (def.kind != OperandKind::kList) {
    if (c.chance(5)) return float_word(c);
    return tensor_word(c, usual_dtype, shapes);
  }
  std::vector<std::string> items(c.below(4));
  for (std::string& item : items) item = tensor_word(c, usual_dtype, shapes);
  return "[" + join(items, ",") + "]";
}

using Words = std::vector<std::pair<std::string, std::string>>;

void set_word(Words& words, const std::string& name, const std::string& value) {
  const auto at = std::find_if(words.begin(), words.end(),
                               [&](const auto& word) { return word.first == name; });
  if (at == words.end())
    words.emplace_back(name, value);
  else
    at->second = value;
}

/// Runs a call; "" or what is wrong with how it ended.
std::string outcome(const Op& op, const std::vector<std::string>& words, bool& rejected) {
  const auto attempt = [&](Mode mode, bool gradients) -> std::string {
    try {
      run_named(parse_call(op, words), mode, gradients);
      return "";
    } catch (const Error& e) {
      rejected = true;
      const std::string& message = e.message();
      if (e.code() == ErrorCode::kInternal) return str("internal error: ", message);
      if (message.empty()) return "an error without a message";
      if (message.find('\n') != std::string::npos) return "an error of several lines: " + message;
      return "";
    } catch (const std::exception& e) {
      return str("an error without a type: ", e.what());
    }
  };
  std::string bad = attempt(Mode::kEager, op.differentiable());
  if (!bad.empty()) return bad;
  bad = attempt(Mode::kCompiled, false);
  return bad.empty() ? "" : "compiled: " + bad;
}

std::string command(const Op& op, const std::vector<std::string>& words) {
  std::string out = str("paddle op run ", op.name());
  for (const std::string& word : words) out += " '" + word + "'";
  return out;
}

std::vector<const Op*> ops_of(const std::string& family, const std::string& filter) {
  std::regex pattern;
  try {
    pattern = std::regex(filter);
  } catch (const std::regex_error&) {
    fail(ErrorCode::kUsage, "--filter: '", filter, "' is not a regular expression");
  }
  std::vector<const Op*> out;
  bool known = family == "all";
  for (const Op* op : all_ops()) {
    if (family != "all" && family != op->def->family) continue;
    known = true;
    // Control flow has regions, which arguments cannot give; communication needs other ranks.
    if (op->has(kControlFlow) || std::string_view(op->def->family) == "comm") continue;
    if (filter.empty() || std::regex_search(std::string(op->name()), pattern)) out.push_back(op);
  }
  if (!known)
    fail(ErrorCode::kUsage, "unknown family '", family, "'", did_you_mean(family, families()));
  if (out.empty()) fail(ErrorCode::kUsage, "no operation of the family matches '", filter, "'");
  return out;
}

}  // namespace

std::vector<std::string> families() {
  std::set<std::string> names;
  for (const Op* op : all_ops()) names.insert(op->def->family);
  return {names.begin(), names.end()};
}

void limit_memory(int64_t mib) {
  static bool done = false;
  if (std::exchange(done, true)) return;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto limit = static_cast<rlim_t>(pages * 4096 + (mib << 20));
  const rlimit bound{limit, limit};
  ::setrlimit(RLIMIT_AS, &bound);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

std::vector<std::string> random_call(const std::string& name, uint64_t seed, uint64_t index) {
  const Op& op = get_op(name);
  Choices c(name, seed, index);
  const std::vector<std::string> samples = samples_of(op);
  Words words;
  std::vector<std::string> shapes;
  std::map<std::string, std::string, std::less<>> dtypes;  // of the operands of a sample
  std::string dtype = c.chance(50) ? "f32" : "f64";
  const bool from_sample = !samples.empty() && c.chance(75);
  if (from_sample) {
    for (const std::string& word : split(c.of(samples), ' ')) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      const TensorWord t = read_tensor(words.back().second);
      if (!t.known) continue;
      shapes.push_back(t.shape);
      dtypes[words.back().first] = t.dtype;
    }
  }
  const auto change_operand = [&](const OperandDef& def) {
    // float64 stands for any floating type, others are what the operand must be.
    const auto own = dtypes.find(def.name);
    const bool kept = own != dtypes.end() && own->second != "f64";
    set_word(words, def.name, operand_word(c, def, kept ? own->second : dtype, shapes));
  };
  if (!from_sample)
    for (const OperandDef& def : op.operands())
      if (!def.hidden && (!def.optional || c.chance(40))) change_operand(def);
  for (const AttrDef& def : op.attrs())
    if (!def.hidden && c.chance(from_sample ? 15 : def.required ? 95 : 25))
      set_word(words, def.name, attribute_word(c, def));
  if (from_sample) {
    // One or two operands of a call that works.
    std::vector<const OperandDef*> visible;
    for (const OperandDef& def : op.operands())
      if (!def.hidden) visible.push_back(&def);
    for (size_t n = c.below(3); n > 0 && !visible.empty(); --n)
      change_operand(*visible[c.below(visible.size())]);
    if (c.chance(5) && !words.empty())
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(c.below(words.size())));
  }
  std::vector<std::string> out;
  for (const auto& [key, value] : words) out.push_back(key + "=" + value);
  return out;
}

FuzzResult fuzz(const std::string& family, const FuzzOptions& options,
                const std::function<void(const std::string& line)>& report) {
  using Clock = std::chrono::steady_clock;
  std::vector<const Op*> ops = ops_of(family, options.filter);
  const auto begin = Clock::now();
  FuzzResult result;
  std::set<const Op*> only_rejected(ops.begin(), ops.end());
  for (uint64_t round = 0; !ops.empty(); ++round) {
    if (seconds_since(begin) >= options.seconds) break;
    // Each operation as often as the others.
    const size_t each = std::max<size_t>(1, kBatch / ops.size());
    struct Job {
      const Op* op;
      uint64_t index;
    };
    std::vector<Job> jobs;
    for (const Op* op : ops)
      for (size_t i = 0; i < each; ++i) jobs.push_back({op, round * 100000 + i});
    const auto words_of = [&](const Job& job) {
      return random_call(std::string(job.op->name()), options.seed, job.index);
    };
    std::set<const Op*> failed;
    run_isolated(
        jobs.size(),
        [&](size_t i) -> std::string {
          limit_memory(options.memory_mib);
          bool rejected = false;
          const std::string bad = outcome(*jobs[i].op, words_of(jobs[i]), rejected);
          return bad.empty() && rejected ? "rejected" : bad;
        },
        [&](size_t i, const std::string& bad) {
          ++result.calls;
          if (bad == "rejected")
            ++result.rejected;
          else
            only_rejected.erase(jobs[i].op);
          if (bad.empty() || bad == "rejected" || failed.contains(jobs[i].op)) return;
          if (!options.keep_going && result.failed > 0) return;
          ++result.failed;
          failed.insert(jobs[i].op);
          report(
              str(jobs[i].op->name(), ": ", bad, "\n  ", command(*jobs[i].op, words_of(jobs[i]))));
        },
        {options.workers, options.timeout});
    if (result.failed > 0 && !options.keep_going) break;
    std::erase_if(ops, [&](const Op* op) { return failed.contains(op); });
  }
  for (const Op* op : only_rejected) result.only_rejected.emplace_back(op->name());
  std::sort(result.only_rejected.begin(), result.only_rejected.end());
  return result;
}

}  // namespace paddle::inspect
