#include "tune/parallel/published.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "formats/csv.h"
#include "tune/parallel/cost_model.h"

namespace paddle::tune {
namespace {

/// The efficiency of large products that the software of a set reached on a device, fitted to its
/// rows.
struct Fitted {
  const char *set, *device;
  bool float8;
  double efficiency;
};

constexpr Fitted kFitted[] = {
    {"alpa_v100_2022", "V100", false, 0.6221},
    {"bloom_a100_2022", "A100-80GB (Jean Zay)", false, 0.703},
    {"llm_foundry_2023", "A100-40", false, 0.8022},
    {"llm_foundry_2023", "A100", false, 0.8409},
    {"llm_foundry_2023", "H100", false, 0.5685},
    {"llm_foundry_2023", "H100", true, 0.4784},
    {"maxtext_v4", "TPU v4", false, 0.851},
    {"maxtext_v5e", "TPU v5e", false, 0.9546},
    {"maxtext_v5p", "TPU v5p", false, 1.071},
    {"megatron_a100_2021", "A100", false, 0.5847},
    {"megatron_bridge", "B200", true, 0.7314},
    {"megatron_bridge", "B300", true, 1.065},
    {"megatron_bridge", "GB200", true, 0.793},
    {"megatron_bridge", "GB300", true, 0.9882},
    {"megatron_bridge", "H100", true, 0.8167},
    {"megatron_h100_2024", "H100", false, 0.6512},
    {"ml_engineering_2026", "B200", false, 1.387},
    {"ml_engineering_2026", "H200", false, 1.496},
    {"torchtitan_h100_2024", "H100-96", false, 0.5227},
    {"torchtitan_h100_2024", "H100-96", true, 0.532},
};

double fitted_efficiency(const std::string& set, const Cluster& cluster, bool float8) {
  for (const Fitted& f : kFitted)
    if (set == f.set && cluster.device == f.device && float8 == f.float8) return f.efficiency;
  return cluster.efficiency;
}

/// A row by the names of the columns.
class Row {
 public:
  Row(const std::map<std::string, size_t>& columns, std::vector<std::string> fields)
      : columns_(columns), fields_(std::move(fields)) {}
  std::string text(const char* column) const {
    const size_t at = columns_.at(column);
    return at < fields_.size() ? fields_[at] : "";
  }
  std::optional<double> number(const char* column) const {
    double value = 0;
    const std::string field = text(column);
    if (field.empty() || !formats::parse_number(field, value)) return std::nullopt;
    return value;
  }
  int64_t count(const char* column, int64_t otherwise) const {
    return static_cast<int64_t>(number(column).value_or(static_cast<double>(otherwise)));
  }

 private:
  const std::map<std::string, size_t>& columns_;
  std::vector<std::string> fields_;
};

Transformer transformer_of(const Row& row) {
  Transformer m;
  m.name = row.text("model");
  m.layers = row.count("layers", 0);
  m.hidden = row.count("hidden", 0);
  m.heads = row.count("heads", 0);
  m.kv_heads = row.count("kv_heads", m.heads);
  m.ffn = row.count("ffn_hidden", 4 * m.hidden);
  m.vocabulary = row.count("vocab", 0);
  m.sequence = row.count("seq_len", 0);
  m.experts = row.count("experts", 0);
  m.experts_per_token = std::max<int64_t>(1, row.count("experts_topk", 1));
  m.batch = row.count("global_batch", 0);
  // Qwen3's heads are wider than hidden / heads, which the rows do not state.
  m.head_size = m.name.starts_with("Qwen3") ? 128 : m.heads > 0 ? m.hidden / m.heads : 0;
  std::string dtype = row.text("dtype");
  std::transform(dtype.begin(), dtype.end(), dtype.begin(), ::tolower);
  m.precision = dtype.find("fp8") != std::string::npos ? "float8" : "bfloat16";
  // Whether the feed-forward is gated follows from the number of parameters, where it is stated.
  const auto stated = row.number("params_b");
  const auto distance = [&](bool gated) {
    m.gated = gated;
    return std::abs(m.parameters() - *stated * 1e9);
  };
  if (m.name.starts_with("Llama") || m.name.starts_with("Qwen"))
    m.gated = true;
  else
    m.gated = stated ? distance(true) < distance(false) : m.ffn != 4 * m.hidden;
  return m;
}

Strategy strategy_of(const Row& row, int64_t devices) {
  Strategy s;
  s.tensor = row.count("tp", 1);
  s.pipeline = row.count("pp", 1);
  s.context = row.count("cp", 1);
  s.expert = row.count("ep", 1);
  s.chunks = row.count("vpp", 1);
  if (s.chunks > 1) s.schedule = partition::Schedule::kInterleaved;
  s.data = std::max<int64_t>(1, devices / (s.tensor * s.pipeline * s.context));
  s.sharding = row.count("zero_stage", 0);
  s.shards = row.count("fsdp_shard", 0);
  s.micro_batch = std::max<int64_t>(1, row.count("micro_batch", 1));
  s.pipeline_outermost = true;
  // Megatron-LM hides the sum of gradients after a pipeline's last micro-batch since 2023, and
  // DeepSpeed's pipelines add them after it.
  s.overlap = s.pipeline == 1 || row.text("date") >= "2023";
  s.offload = row.text("note").find("CPU-offloaded") != std::string::npos;
  const std::string recompute = row.text("recompute");
  if (recompute.starts_with("full")) s.recompute = Recompute::kFull;
  if (recompute.starts_with("selective") || recompute == "minimal")
    s.recompute = Recompute::kSelective;
  return s;
}

/// Seconds of a step from what the row states: the time, tokens per second, or FLOP/s by the
/// formula of its source.
std::optional<double> step_seconds(const Row& row, const Transformer& m, double devices) {
  if (const auto seconds = row.number("step_s")) return seconds;
  const double tokens = static_cast<double>(m.batch * m.sequence) / devices;
  if (const auto speed = row.number("tokens_per_s_per_gpu")) return tokens / *speed;
  const auto tflops = row.number("tflops_per_gpu");
  if (!tflops) return std::nullopt;
  const auto layers = static_cast<double>(m.layers);
  const double attention = static_cast<double>(m.heads * m.head_size * m.sequence) * layers;
  const double head = static_cast<double>(m.hidden * m.vocabulary);
  const double products =
      layers * (m.attention_parameters() +
                m.feed_forward_parameters() * static_cast<double>(m.experts_per_token));
  const bool once = row.text("tflops_kind").ends_with("once");
  const bool recomputed = row.text("tflops_kind").find("with recompute") != std::string::npos;
  const double flops = recomputed ? 8 * products + 6 * head + 16 * attention
                                  : 6 * (products + head) + (once ? 6 : 12) * attention;
  return tokens * flops / (*tflops * 1e12);
}

/// The group of a row: what its runs have in common, software, model, devices, and the batch,
/// unless it follows from the micro-batch because each rank computes one.
std::string group_of(const Row& row, const Strategy& s, const Transformer& m) {
  std::string out;
  for (const char* column : {"set", "date", "hardware", "gpus", "model", "layers", "hidden",
                             "heads", "ffn_hidden", "seq_len", "dtype"})
    out += row.text(column) + "|";
  return out + (m.batch == s.data * s.micro_batch ? "one micro-batch" : std::to_string(m.batch));
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(values.size() - 1, low + 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace

PublishedRuns check_published(const std::string& path) {
  const std::string content = read_file(path);
  const formats::CsvParser parser(content, path);
  std::vector<formats::CsvRecord> records = parser.index();
  if (records.empty()) fail(ErrorCode::kData, path, ": is empty");
  std::vector<std::string_view> views;
  std::string scratch;
  parser.fields(records[0], views, scratch);
  std::map<std::string, size_t> columns;
  for (size_t i = 0; i < views.size(); ++i) columns[std::string(views[i])] = i;
  for (const char* name : {"id",
                           "set",
                           "date",
                           "hardware",
                           "gpus",
                           "fast_domain",
                           "model",
                           "params_b",
                           "layers",
                           "hidden",
                           "heads",
                           "kv_heads",
                           "ffn_hidden",
                           "vocab",
                           "experts",
                           "experts_topk",
                           "seq_len",
                           "dtype",
                           "tp",
                           "pp",
                           "vpp",
                           "cp",
                           "ep",
                           "fsdp_shard",
                           "zero_stage",
                           "micro_batch",
                           "global_batch",
                           "recompute",
                           "step_s",
                           "tokens_per_s_per_gpu",
                           "tflops_per_gpu",
                           "tflops_kind",
                           "mem_gib_per_gpu",
                           "note"})
    if (!columns.contains(name)) fail(ErrorCode::kData, path, ":1: has no column '", name, "'");
  PublishedRuns out;
  for (size_t i = 1; i < records.size(); ++i) {
    parser.fields(records[i], views, scratch);
    const Row row(columns, {views.begin(), views.end()});
    const Transformer m = transformer_of(row);
    const Cluster* const known = known_device(row.text("hardware"));
    const int64_t devices = row.count("gpus", 0);
    const auto seconds = step_seconds(row, m, static_cast<double>(devices));
    if (m.layers == 0 || m.hidden == 0 || m.heads == 0 || m.batch == 0 || devices == 0 ||
        !seconds || !known) {
      out.without_shape.push_back(row.text("id"));
      continue;
    }
    Cluster cluster = *known;
    cluster.devices = std::min(devices, row.count("fast_domain", 8));
    cluster.hosts = (devices + cluster.devices - 1) / cluster.devices;
    cluster.efficiency = fitted_efficiency(row.text("set"), cluster, m.precision == "float8");
    const Strategy strategy = strategy_of(row, devices);
    const Prediction p = predict(m, cluster, strategy);
    out.runs.push_back({row.text("id"), row.text("set"), cluster.device, m.precision,
                        group_of(row, strategy, m), static_cast<double>(m.batch), *seconds,
                        p.seconds, row.number("mem_gib_per_gpu").value_or(0) * kGib, p.memory});
  }
  return out;
}

std::string published_text(const PublishedRuns& runs) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> sets;
  for (const PublishedRun& run : runs.runs)
    for (const std::string& set :
         {run.set + " " + run.device + " " + run.precision, std::string("\x7f all")}) {
      sets[set].first.push_back(std::abs(run.predicted / run.seconds - 1));
      if (run.memory > 0)
        sets[set].second.push_back(std::abs(run.predicted_memory / run.memory - 1));
    }
  std::string out =
      "| runs | rows | error of the step, median | 90th percentile | error of memory, median "
      "(rows) |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const auto& [set, errors] : sets) {
    out += fmt::format("| {} | {} | {:.1f}% | {:.1f}% | ", set[0] == '\x7f' ? "all" : set.c_str(),
                       errors.first.size(), 100 * quantile(errors.first, 0.5),
                       100 * quantile(errors.first, 0.9));
    if (errors.second.empty()) {
      out += "– |\n";
    } else {
      out +=
          fmt::format("{:.0f}% ({}) |\n", 100 * quantile(errors.second, 0.5), errors.second.size());
    }
  }
  if (!runs.without_shape.empty())
    out += str("\n", runs.without_shape.size(),
               " further rows state no shape of the model or are of an unknown device.\n");
  const PublishedChoices choices = choices_of(runs);
  if (choices.groups > 0)
    out += fmt::format(
        "\nOf {} groups of runs that differ only in their strategies, the predicted best is the "
        "measured best in {} and within 2% of it in {} ({:.0f}%); the worst choice takes {:.0f}% "
        "longer than the best ({}).\n",
        choices.groups, choices.best, choices.within, 100.0 * choices.within / choices.groups,
        100 * choices.worst, choices.worst_run.c_str());
  return out;
}

PublishedChoices choices_of(const PublishedRuns& runs) {
  std::map<std::string, std::vector<const PublishedRun*>> groups;
  for (const PublishedRun& run : runs.runs) groups[run.group].push_back(&run);
  PublishedChoices out;
  for (const auto& [name, members] : groups) {
    const auto predicted = [](const PublishedRun* r) { return r->predicted / r->sequences; };
    const auto measured = [](const PublishedRun* r) { return r->seconds / r->sequences; };
    const auto [lowest, highest] = std::minmax_element(
        members.begin(), members.end(),
        [&](const auto* a, const auto* b) { return predicted(a) < predicted(b); });
    // Runs of one strategy have one prediction, and leave nothing to choose.
    if (predicted(*highest) <= predicted(*lowest) * (1 + 1e-9)) continue;
    ++out.groups;
    double best = measured(members[0]), chosen = 0;
    const PublishedRun* run = nullptr;
    for (const PublishedRun* r : members) {
      best = std::min(best, measured(r));
      if (predicted(r) > predicted(*lowest) * (1 + 1e-9)) continue;
      if (!run || measured(r) < chosen) {
        run = r;
        chosen = measured(r);
      }
    }
    const double loss = chosen / best - 1;
    out.best += loss <= 0;
    out.within += loss <= 0.02;
    if (loss <= out.worst && !out.worst_run.empty()) continue;
    out.worst = loss;
    out.worst_run = run->id;
  }
  return out;
}

std::string published_json(const PublishedRuns& runs) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const PublishedRun& r : runs.runs)
    rows.push_back({{"id", r.id},
                    {"set", r.set},
                    {"group", r.group},
                    {"step_seconds", r.seconds},
                    {"predicted_seconds", r.predicted},
                    {"memory_gib", r.memory / kGib},
                    {"predicted_memory_gib", r.predicted_memory / kGib}});
  const PublishedChoices c = choices_of(runs);
  const Json o = {{"runs", rows},
                  {"without_shape", runs.without_shape},
                  {"choices",
                   {{"groups", c.groups},
                    {"best", c.best},
                    {"within_2_percent", c.within},
                    {"worst_loss", c.worst},
                    {"worst_run", c.worst_run}}}};
  return o.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paddle::tune
