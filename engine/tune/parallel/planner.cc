#include "tune/parallel/planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace paddle::tune {
namespace {

constexpr double kUsableMemory = 0.92;  ///< the rest is fragmentation

const char* name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
    case Recompute::kNone:
      break;
  }
  return "none";
}

std::vector<int64_t> divisors(int64_t n, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

std::vector<std::string> sorted(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  return words;
}

/// Values of a strategy that are fixed, by key.
class Constraints {
 public:
  explicit Constraints(const std::vector<std::string>& fixed) {
    static const std::vector<std::string> kKeys = {"data",     "tensor",   "pipeline",    "context",
                                                   "expert",   "sharding", "micro_batch", "chunks",
                                                   "schedule", "recompute"};
    static const std::map<std::string, std::vector<std::string>> kWords = {
        {"recompute", {"none", "selective", "full"}},
        {"schedule", sorted(partition::schedule_names())}};
    for (const std::string& text : fixed) {
      const size_t equals = text.find('=');
      const std::string key = text.substr(0, equals);
      if (equals == std::string::npos)
        fail(ErrorCode::kUsage, "--fix: expected key=value, found '", text, "'");
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        fail(ErrorCode::kUsage, "--fix: unknown key '", key, "'", did_you_mean(key, kKeys),
             "; expected one of ", join(kKeys, ", "));
      values_[key] = text.substr(equals + 1);
      const auto words = kWords.find(key);
      if (words != kWords.end()) {
        if (std::find(words->second.begin(), words->second.end(), values_[key]) ==
            words->second.end())
          fail(ErrorCode::kUsage, "--fix: ", key, " is one of ", join(words->second, ", "),
               ", found '", values_[key], "'");
        continue;
      }
      const std::string& value = values_[key];
      int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < 0)
        fail(ErrorCode::kUsage, "--fix: ", key, " is a number, found '", value, "'");
    }
  }
  bool allows(const char* key, int64_t value) const {
    const auto it = values_.find(key);
    return it == values_.end() || it->second == std::to_string(value);
  }
  bool allows(Recompute recompute) const { return allows_word("recompute", name_of(recompute)); }
  bool allows(partition::Schedule schedule) const {
    return allows_word("schedule", partition::name_of(schedule));
  }
  /// These sizes, and the fixed one, which may be outside of the usual ones.
  std::vector<int64_t> filter(const char* key, std::vector<int64_t> sizes) const {
    std::erase_if(sizes, [&](int64_t size) { return !allows(key, size); });
    return sizes;
  }

 private:
  bool allows_word(const char* key, const std::string& word) const {
    const auto it = values_.find(key);
    return it == values_.end() || it->second == word;
  }

  std::map<std::string, std::string> values_;
};

class Planner {
 public:
  Planner(const Transformer& model, const Cluster& cluster, const Constraints& constraints)
      : m_(model), c_(cluster), constraints_(constraints) {}

  void run() {
    const int64_t all = c_.all();
    std::vector<int64_t> tensors;
    for (const int64_t t : divisors(all, 128))
      if (m_.heads % t == 0 && m_.ffn % t == 0) tensors.push_back(t);
    for (const int64_t tensor : constraints_.filter("tensor", tensors))
      for (const int64_t context : constraints_.filter(
               "context", divisors(all / tensor, std::max<int64_t>(1, m_.sequence / 2048))))
        for (const int64_t pipeline :
             constraints_.filter("pipeline", divisors(all / tensor / context, m_.layers)))
          mesh(tensor, context, pipeline);
  }

  std::vector<Plan> plans() {
    std::vector<Plan> out;
    for (auto& [mesh, plan] : best_) out.push_back(std::move(plan));
    std::stable_sort(out.begin(), out.end(), [](const Plan& a, const Plan& b) {
      return a.fits != b.fits ? a.fits : better(a, b);
    });
    return out;
  }
  int64_t considered() const { return considered_; }

 private:
  /// Among plans that fit the faster one, else the smaller one.
  static bool better(const Plan& a, const Plan& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.prediction.seconds < b.prediction.seconds
                  : a.prediction.memory < b.prediction.memory;
  }

  void mesh(int64_t tensor, int64_t context, int64_t pipeline) {
    const int64_t data = c_.all() / tensor / context / pipeline;
    if (!constraints_.allows("data", data) || m_.batch % data != 0) return;
    for (const int64_t expert :
         constraints_.filter("expert", divisors(data, std::max<int64_t>(1, m_.experts)))) {
      if (expert > 1 && m_.experts % expert != 0) continue;
      for (const int64_t micro_batch :
           constraints_.filter("micro_batch", divisors(m_.batch / data, 64)))
        for (const auto& [schedule, chunks] : schedules(pipeline, m_.batch / data / micro_batch)) {
          for (const auto& [sharding, shards] : shardings(data))
            for (const Recompute recompute :
                 {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
              consider({.data = data,
                        .pipeline = pipeline,
                        .context = context,
                        .tensor = tensor,
                        .expert = expert,
                        .chunks = chunks,
                        .schedule = schedule,
                        .sharding = sharding,
                        .shards = shards,
                        .micro_batch = micro_batch,
                        .recompute = recompute});
        }
    }
  }

  /// Stages of sharding with the ranks of a group (0: all), which only stage 3 varies.
  static std::vector<std::pair<int64_t, int64_t>> shardings(int64_t data) {
    std::vector<std::pair<int64_t, int64_t>> out = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
    for (const int64_t group : {8, 16, 32, 64, 128})
      if (group < data && data % group == 0) out.push_back({3, group});
    return out;
  }

  /// The orders of a pipeline that its sizes allow, with the stages of a device. A pipeline of one
  /// stage has only the plain one.
  std::vector<std::pair<partition::Schedule, int64_t>> schedules(int64_t pipeline,
                                                                 int64_t micro_batches) const {
    std::vector<std::pair<partition::Schedule, int64_t>> out;
    for (const int64_t chunks : constraints_.filter("chunks", {1, 2, 3, 4, 5, 6, 8, 10})) {
      if (chunks == 1) {
        out.emplace_back(partition::Schedule::kOneForwardOneBackward, 1);
        if (pipeline == 1) continue;
        out.emplace_back(partition::Schedule::kForwardThenBackward, 1);
        out.emplace_back(partition::Schedule::kZeroBubble, 1);
      } else if (pipeline > 1 && m_.layers % (pipeline * chunks) == 0 &&
                 micro_batches % pipeline == 0) {
        out.emplace_back(partition::Schedule::kInterleaved, chunks);
      }
    }
    std::erase_if(out, [&](const auto& each) { return !constraints_.allows(each.first); });
    return out;
  }

  void consider(const Strategy& s) {
    if (!constraints_.allows("sharding", s.sharding) || !constraints_.allows(s.recompute)) return;
    // Gathering parameters for each micro-batch of a pipeline multiplies the traffic.
    if (s.sharding > 0 && s.data == 1) return;
    if (s.sharding > 1 && s.pipeline > 1) return;
    ++considered_;
    Plan plan{s, predict(m_, c_, s), false, ""};
    plan.fits = plan.prediction.memory <= kUsableMemory * c_.memory;
    const auto key = std::tuple(s.data, s.pipeline, s.context, s.tensor, s.expert);
    const auto [it, added] = best_.try_emplace(key, plan);
    if (!added && better(plan, it->second)) it->second = plan;
  }

  const Transformer& m_;
  const Cluster& c_;
  const Constraints& constraints_;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>, Plan> best_;
  int64_t considered_ = 0;
};

/// Where the time of a step and the memory go.
std::string reason_of(const Plan& plan, const Cluster& cluster) {
  const Prediction& p = plan.prediction;
  const Strategy& s = plan.strategy;
  std::string out = fmt::format("compute {:.0f}%", 100 * p.compute / p.seconds);
  const auto add = [&](double seconds, const char* what) {
    if (seconds >= 0.005 * p.seconds)
      out += fmt::format(", {} {:.0f}%", what, 100 * seconds / p.seconds);
  };
  add(p.tensor, "all-reduces of tensor parallelism");
  add(p.pipeline, "pipeline bubble and transfers");
  add(p.data, s.sharding >= 3 ? "gathers of parameters" : "reduction of gradients");
  add(p.experts, "exchange of tokens");
  add(p.context, "exchange of keys and values");
  add(p.optimizer, "optimizer");
  out += fmt::format(
      "; memory {:.1f} of {:.0f} GiB: parameters and states {:.1f}, activations {:.1f}",
      p.memory / kGib, cluster.memory / kGib, p.state_memory / kGib, p.activation_memory / kGib);
  return out;
}

}  // namespace

PlanningResult plan_parallel(const Transformer& model, const Cluster& cluster,
                             const std::vector<std::string>& fixed, size_t count) {
  const Constraints constraints(fixed);
  Planner planner(model, cluster, constraints);
  planner.run();
  PlanningResult result;
  result.considered = planner.considered();
  result.plans = planner.plans();
  if (result.plans.empty())
    fail(ErrorCode::kUsage, "no strategy of ", cluster.all(), " devices divides a batch of ",
         model.batch, " sequences, ", model.heads, " heads and ", model.layers, " layers",
         fixed.empty() ? "" : " under --fix " + join(fixed, ","));
  result.plans.resize(std::min(result.plans.size(), count));
  for (Plan& plan : result.plans) plan.reason = reason_of(plan, cluster);
  return result;
}

std::string plans_text(const Transformer& model, const Cluster& cluster,
                       const PlanningResult& result) {
  const double parameters = model.parameters();
  std::string out =
      model.name + (parameters >= 1e9
                        ? fmt::format(": {:.1f} billion parameters, ", parameters * 1e-9)
                        : fmt::format(": {:.0f} million parameters, ", parameters * 1e-6));
  out += str(model.batch, " sequences of ", model.sequence, " tokens on ", cluster.all(), " x ",
             cluster.device, "\n");
  out += str("the best of ", result.considered, " strategies, one for each mesh\n");
  for (const Plan& plan : result.plans) {
    const double seconds = plan.prediction.seconds;
    out += seconds >= 0.1 ? fmt::format("{:9.3f} s ", seconds)
                          : fmt::format("{:9.3f} ms", 1e3 * seconds);
    out += fmt::format("  {:6.1f} GiB  {}", plan.prediction.memory / kGib,
                       plan.fits ? "" : "DOES NOT FIT  ");
    out += text(plan.strategy) + "\n             " + plan.reason + "\n";
  }
  if (!result.plans.front().fits)
    out += str("nothing fits in ", human_bytes(static_cast<uint64_t>(cluster.memory)),
               " of a device; the first plan needs the least\n");
  return out;
}

/// The strategy as the section `parallel` of a config; `context`, which training does not have, and
/// `expert`, which it has for the layer `experts` only, where the plan uses them.
nlohmann::ordered_json parallel_section(const Strategy& s, const Prediction& p) {
  nlohmann::ordered_json out = {{"data", s.data},
                                {"tensor", s.tensor},
                                {"sequence", s.tensor > 1},
                                {"pipeline", s.pipeline},
                                {"schedule", partition::name_of(s.schedule)},
                                {"micro_batches", static_cast<int64_t>(p.micro_batches)},
                                {"chunks", s.chunks},
                                {"sharding", s.sharding}};
  if (s.recompute == Recompute::kSelective)
    out["recompute"] = {{"layers", {"*attention*"}}};
  else
    out["recompute"] = name_of(s.recompute);
  if (s.context > 1) out["context"] = s.context;
  if (s.expert > 1) out["expert"] = s.expert;
  return out;
}

/// Whether a config may have the strategy as its section `parallel`.
bool is_trainable(const Strategy& s) { return s.context == 1 && s.expert == 1; }

std::string plans_json(const Transformer& model, const Cluster& cluster,
                       const PlanningResult& result) {
  using Json = nlohmann::ordered_json;
  Json plans = Json::array();
  for (const Plan& plan : result.plans) {
    const Strategy& s = plan.strategy;
    const Prediction& p = plan.prediction;
    const double tokens = static_cast<double>(model.batch * model.sequence);
    plans.push_back(
        {{"parallel", parallel_section(s, p)},
         {"trainable", is_trainable(s)},
         {"micro_batch", s.micro_batch},
         {"sharding_group", s.sharding_ranks()},
         {"step_seconds", p.seconds},
         {"memory_gib", p.memory / kGib},
         {"fits", plan.fits},
         {"tokens_per_second_per_device", tokens / p.seconds / static_cast<double>(cluster.all())},
         {"seconds",
          {{"compute", p.compute},
           {"tensor", p.tensor},
           {"pipeline", p.pipeline},
           {"data", p.data},
           {"expert", p.experts},
           {"context", p.context},
           {"optimizer", p.optimizer}}},
         {"reason", plan.reason}});
  }
  const Json o = {
      {"model", model.name},      {"parameters", model.parameters()}, {"devices", cluster.all()},
      {"device", cluster.device}, {"considered", result.considered},  {"plans", plans}};
  return o.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paddle::tune
