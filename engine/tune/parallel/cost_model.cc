#include "tune/parallel/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tune/parallel/products.h"
#include "tune/parallel/step_memory.h"

namespace paddle::tune {
namespace {

// Fitted to the published runs of tests/tune/published_runs.csv (docs/performance/planner.md).
constexpr double kAttention = 0.3656;     ///< rate of attention over that of products
constexpr double kHalfSequence = 983.0;   ///< sequences that reach half of attention's rate
constexpr double kHead = 0.3454;          ///< rate of the product with the vocabulary
constexpr double kTraffic = 1.465;        ///< passes over the residual stream in a layer
constexpr double kLaunch = 3e-5;          ///< seconds that launching a pass of a layer takes
constexpr double kOverlap = 0.8609;       ///< share of compute that hides communication
constexpr double kOffloaded = 2.6265e-9;  ///< seconds of the host for a parameter
constexpr double kExposed = 0.05;         ///< share of overlapped communication that remains

/// A sequence of the layers of one device, for one micro-batch.
struct MicroBatch {
  const Transformer& m;
  const Cluster& c;
  const Strategy& s;
  double tokens, layers, passes, attention = 0;

  MicroBatch(const Transformer& model, const Cluster& cluster, const Strategy& strategy)
      : m(model),
        c(cluster),
        s(strategy),
        tokens(real(s.micro_batch) * real(m.sequence) / real(s.context)),
        layers(std::ceil(real(m.layers) / real(s.pipeline * s.chunks)) * real(s.chunks)),
        passes(s.recompute != Recompute::kFull                  ? 3
               : s.schedule == partition::Schedule::kZeroBubble ? 5  // both backward jobs recompute
                                                                : 4) {}

  /// Seconds of the layers: products, attention, and passes over the residual stream.
  double compute() {
    const double queries = real(m.heads * m.head_size);
    const double rate = c.peak(m.precision) * c.efficiency;
    double product_time = 0;
    for (const Product& each : products_of_layer(m, s, tokens))
      product_time += each.flops() * passes / (rate * shape_efficiency(each));
    // The backward pass of attention computes the scores again.
    const double attention_passes = s.recompute == Recompute::kNone ? 3.5 : 4.5;
    const double sequence = real(m.sequence);
    attention =
        2 * queries * sequence / real(s.tensor) * tokens * attention_passes /
        (c.peak("bfloat16") * c.efficiency * kAttention * sequence / (sequence + kHalfSequence));
    const double traffic =
        kTraffic * tokens * real(m.hidden) * m.item_bytes() * passes / c.bandwidth;
    return layers * std::max(kLaunch * passes, product_time + attention + traffic);
  }

  /// Seconds of the slowest stage, whose layers take `seconds`: a stage has whole layers, and the
  /// product with the vocabulary takes the place of some where that evens stages out.
  double slowest_stage(double seconds, double head) const {
    if (s.pipeline == 1) return seconds + head;
    return std::max(seconds, (real(m.layers) / layers * seconds + head) / real(s.pipeline));
  }

  double head() const {
    return 6 * real(m.hidden) * real(m.vocabulary) / real(s.tensor) * tokens /
           (c.peak("bfloat16") * c.efficiency * kHead);
  }

  /// All-reduces of the residual stream: two in each of forward, backward and recomputation.
  double tensor() const {
    if (s.tensor == 1) return 0;
    const double count = s.recompute == Recompute::kFull ? 6 : 4, ranks = real(s.tensor);
    return layers * count * tokens * real(m.hidden) * m.item_bytes() * 2 * (ranks - 1) / ranks /
           c.ring(s.tensor, 1);
  }

  double experts() const {
    if (m.experts == 0 || s.expert == 1) return 0;
    return layers * tokens * real(m.hidden) * m.item_bytes() * real(m.experts_per_token) * 4 /
           c.link(s.expert, s.data_stride());
  }

  /// Keys and values of the other parts of the sequence, after attention.
  double context() const {
    if (s.context == 1) return 0;
    const double ranks = real(s.context);
    const double time = layers * passes * 2 * tokens * real(m.kv_heads * m.head_size) /
                        real(s.tensor) * m.item_bytes() * (ranks - 1) / c.ring(s.context, s.tensor);
    return std::max(0.0, time - 0.9 * layers * attention) + kExposed * time;
  }

  double send() const {
    if (s.pipeline == 1) return 0;
    const int64_t stride = s.pipeline_stride();
    return real(s.chunks) * tokens * real(m.hidden) * m.item_bytes() / real(s.tensor) /
               c.link(s.pipeline, stride) +
           2 * real(s.chunks) * c.latency(s.pipeline, stride);
  }
};

/// Parameters of a device before sharding. Those of experts have fewer replicas.
struct Parameters {
  double dense, experts;
  double expert_ranks;

  Parameters(const Transformer& m, const Strategy& s)
      : dense(m.dense_parameters() / real(s.tensor * s.pipeline)),
        experts(m.expert_parameters() / real(s.pipeline * s.expert)),
        expert_ranks(real(s.expert)) {}
  double all() const { return dense + experts; }
  /// The part that each of `shards` ranks keeps.
  double shard(double shards) const {
    return dense / shards + experts / std::max(1.0, shards / expert_ranks);
  }
  /// Numbers that a ring sends to add gradients over `ranks`, over those of a rank.
  double reduced(double ranks) const {
    const double replicas = std::max(1.0, ranks / expert_ranks);
    return 2 * (dense * (ranks - 1) / ranks + experts * (replicas - 1) / replicas);
  }
};

}  // namespace

std::string text(const Strategy& s) {
  std::string out = str("data ", s.data);
  const auto add = [&](int64_t value, const char* name) {
    if (value > 1) out += str(", ", name, " ", value);
  };
  add(s.tensor, "tensor");
  add(s.pipeline, "pipeline");
  if (s.pipeline > 1)
    out += s.chunks > 1 ? str(" (interleaved, ", s.chunks, " chunks)")
                        : str(" (", partition::name_of(s.schedule), ")");
  add(s.context, "context");
  add(s.expert, "expert");
  out += str(", micro-batch ", s.micro_batch);
  if (s.sharding > 0) out += str(", sharding ", s.sharding);
  if (s.sharding > 0 && s.sharding_ranks() < s.data)
    out += str(" in groups of ", s.sharding_ranks());
  if (s.recompute != Recompute::kNone)
    out += s.recompute == Recompute::kFull ? ", recompute full" : ", recompute selective";
  return out;
}

Prediction predict(const Transformer& m, const Cluster& c, const Strategy& s) {
  Prediction p;
  MicroBatch micro(m, c, s);
  p.micro_batches = std::max(1.0, real(m.batch) / real(s.data * s.micro_batch));
  const double layers = micro.compute(), head = micro.head();
  const Parameters parameters(m, s);
  const double shard = parameters.shard(real(s.sharding_ranks()));
  const int64_t stride = s.data_stride();
  const double link = c.ring(s.sharding >= 3 ? s.sharding_ranks() : s.data, stride);
  const double hiding = s.overlap ? kOverlap * layers : 0;
  double gathers = 0, reduction = 0;
  if (s.sharding >= 3) {
    // Parameters are gathered for forward and backward, and gradients scattered, in each
    // micro-batch.
    const double ranks = real(s.sharding_ranks());
    // A ring over many hosts pays a latency for each of them, layer by layer.
    const double hosts = std::max(1.0, real(s.sharding_ranks() * stride) / real(c.devices));
    const double time = parameters.all() * m.item_bytes() * 3 * (ranks - 1) / ranks / link +
                        3 * micro.layers * (hosts - 1) * c.network_latency;
    gathers = std::max(0.0, time - hiding) + kExposed * time;
    // Groups that shard hold replicas of each other, whose gradients are added once in a step.
    const double replicas = real(s.data) / ranks;
    if (replicas > 1) {
      const double sum = shard * 4 * 2 * (replicas - 1) / replicas /
                         c.ring(s.data / s.sharding_ranks(), stride * s.sharding_ranks());
      reduction = std::max(0.1 * sum, sum - hiding);
    }
  } else if (s.data > 1) {
    const double time = parameters.reduced(real(s.data)) * 4 / link;
    reduction = std::max(0.1 * time, time - hiding);
  }
  const double tensor = micro.tensor(), experts = micro.experts(), context = micro.context(),
               send = micro.send();
  // The slowest stage sets the pace, and the pipeline fills and drains with the others.
  const double stage = layers + tensor + gathers + experts + context + send;
  const double slowest = micro.slowest_stage(stage, head);
  const double all = real(m.layers) / micro.layers * stage + head;
  // Gradients of weights, a third of a pass over a stage, fill what other schedules wait.
  const double filled = s.schedule == partition::Schedule::kZeroBubble ? 3 : real(s.chunks);
  const double bubble = std::max(0.0, all - slowest) / filled;
  // The mean over stages; what uneven ones wait counts as the pipeline's.
  const double even = real(m.layers) / real(s.pipeline) / micro.layers;
  p.compute = p.micro_batches * (even * layers + head / real(s.pipeline));
  p.tensor = p.micro_batches * tensor;
  p.experts = p.micro_batches * experts;
  p.context = p.micro_batches * context;
  p.data = p.micro_batches * gathers + reduction;
  p.optimizer = s.offload ? kOffloaded * shard : shard * 16 / c.bandwidth;
  p.seconds = p.micro_batches * slowest + bubble + reduction + p.optimizer;
  p.pipeline = p.seconds - p.compute - p.tensor - p.experts - p.context - p.data - p.optimizer;
  const StepMemory memory = memory_of_step(m, s, p.micro_batches);
  p.state_memory = memory.states;
  p.activation_memory = memory.activations;
  p.memory = memory.all();
  return p;
}

}  // namespace paddle::tune
