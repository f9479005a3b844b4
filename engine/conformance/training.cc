#include "conformance/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "autograd/autograd.h"
#include "conformance/every_operation.h"
#include "conformance/operators.h"
#include "conformance/passes.h"
#include "conformance/results.h"
#include "inspect/numeric.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/engine_kernels.h"
#include "ops/core/operand_types.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "tensor/device_functions.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using inspect::Mode;

constexpr int kSteps = 20, kQuickSteps = 8;

enum class Update : uint8_t { kSgd, kMomentum, kAdam };

struct Net {
  std::string name;
  Update rule = Update::kSgd;
  double rate = 0.1;
  double tolerance = 1e-3;  ///< of the losses, relative
  std::vector<Array> parameters, statistics, batch;
  /// The loss; `statistics` are replaced by those after the step.
  std::function<Tensor(const Tensors& parameters, Tensors& statistics, const Tensors& batch)> loss;
  int steps = kSteps;
};

/// Makes the arrays of a network.
class Arrays {
 public:
  explicit Arrays(uint64_t seed) : seed_(seed) {}
  /// Normal numbers divided by the root of the sizes that a sum has.
  Array weight(const Dims& shape) {
    int64_t sum = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) sum *= shape[i];
    return drawn(shape, 1 / std::sqrt(static_cast<double>(sum)));
  }
  Array drawn(const Dims& shape, double scale = 1) {
    Array out = Array::empty(DType::kF64, shape);
    Random(seed_, next_++)
        .fill_normal(std::span(out.data<double>(), static_cast<size_t>(out.size())));
    for (int64_t i = 0; i < out.size(); ++i) out.data<double>()[i] *= scale;
    return out.cast(DType::kF32);
  }
  Array below(const Dims& shape, uint64_t bound) {
    Array out = Array::empty(DType::kI64, shape);
    const Random random(seed_, next_++);
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(i), bound));
    return out;
  }
  static Array constant(const Dims& shape, float value) {
    Array out = Array::empty(DType::kF32, shape);
    std::fill_n(out.data<float>(), out.size(), value);
    return out;
  }

 private:
  uint64_t seed_, next_ = 0;
};

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return ops::matmul(x, weight) + bias;
}
Tensor class_loss(const Tensor& logits, const Tensor& labels) {
  return ops::mean(ops::softmax_cross_entropy(logits, labels));
}

Net mlp(uint64_t seed) {
  Arrays a(seed);
  return {"mlp",
          Update::kSgd,
          0.2,
          1e-3,
          {a.weight({10, 32}), a.constant({32}, 0), a.weight({32, 3}), a.constant({3}, 0)},
          {},
          {a.drawn({16, 10}), a.below({16}, 3)},
          [](const Tensors& p, Tensors&, const Tensors& b) {
            return class_loss(linear(ops::relu(linear(b[0], p[0], p[1])), p[2], p[3]), b[1]);
          }};
}

Net regression(uint64_t seed) {
  Arrays a(seed);
  return {"regression",
          Update::kAdam,
          0.01,
          1e-3,
          {a.weight({7, 24}), a.constant({24}, 0), a.weight({24, 2}), a.constant({2}, 0)},
          {},
          {a.drawn({13, 7}), a.drawn({13, 2})},
          [](const Tensors& p, Tensors&, const Tensors& b) {
            const Tensor y = linear(ops::tanh(linear(b[0], p[0], p[1])), p[2], p[3]);
            return ops::mean(ops::square(y - b[1]));
          }};
}

Net convolution(uint64_t seed) {
  Arrays a(seed);
  return {
      "convolution",
      Update::kMomentum,
      0.05,
      1e-3,
      {a.drawn({6, 2, 3, 3}, 0.3), a.constant({6}, 0), a.drawn({4, 6, 3, 3}, 0.2),
       a.constant({4}, 0), a.weight({4, 3}), a.constant({3}, 0)},
      {},
      {a.drawn({8, 2, 10, 10}), a.below({8}, 3)},
      [](const Tensors& p, Tensors&, const Tensors& b) {
        const Tensor first = ops::relu(ops::conv2d(b[0], p[0], p[1]));
        const Tensor pooled = ops::max_pool2d(first, AttrValue(int64_t{2}))[0];
        const Tensor second = ops::relu(ops::conv2d(pooled, p[2], p[3]));
        return class_loss(linear(ops::mean(second, std::vector<int64_t>{2, 3}), p[4], p[5]), b[1]);
      }};
}

Net batch_norm(uint64_t seed) {
  Arrays a(seed);
  return {"batch_norm",
          Update::kMomentum,
          0.05,
          1e-3,
          {a.weight({6, 12}), a.constant({12}, 1), a.constant({12}, 0), a.weight({12, 12}),
           a.weight({12, 3})},
          {a.constant({12}, 0), a.constant({12}, 1)},
          {a.drawn({20, 6}), a.below({20}, 3)},
          [](const Tensors& p, Tensors& statistics, const Tensors& b) {
            static const Op& op = get_op("batch_norm");
            Attrs attrs = default_attrs(op);
            attrs[static_cast<size_t>(op.attr_index("training"))] = true;
            const Tensors all = call(
                op, {ops::matmul(b[0], p[0]), statistics[0], statistics[1], p[1], p[2]}, attrs);
            statistics = {all.at(1), all.at(2)};
            const Tensor h = ops::relu(all[0]);
            const Tensor residual = h + ops::relu(ops::matmul(h, p[3]));
            return class_loss(ops::matmul(residual, p[4]), b[1]);
          }};
}

Net attention(uint64_t seed) {
  Arrays a(seed);
  return {"attention",
          Update::kAdam,
          0.01,
          2e-3,
          {a.drawn({11, 16}, 0.5), a.constant({16}, 1), a.constant({16}, 0), a.weight({16, 48}),
           a.weight({16, 16}), a.weight({16, 11})},
          {},
          {a.below({3, 6}, 11), a.below({18}, 11)},
          [](const Tensors& p, Tensors&, const Tensors& b) {
            const Tensor x = ops::embedding(b[0], p[0]);
            const Tensor h = ops::layer_norm(x, AttrValue(int64_t{16}), p[1], p[2]);
            const Tensor all = ops::matmul(h, p[3]);
            const auto part = [&](int64_t begin) {
              const Tensor one = ops::slice(all, {2}, {begin}, {begin + 16});
              return ops::reshape(one, {3, 6, 2, 8});
            };
            const Tensor mixed = ops::scaled_dot_product_attention(part(0), part(16), part(32), {},
                                                                   0.0, /*is_causal=*/true);
            const Tensor y = x + ops::gelu(ops::matmul(ops::reshape(mixed, {3, 6, 16}), p[4]));
            return class_loss(ops::matmul(ops::reshape(y, {18, 16}), p[5]), b[1]);
          }};
}

Net recurrent(uint64_t seed) {
  Arrays a(seed);
  return {"recurrent",
          Update::kAdam,
          0.01,
          1e-3,
          {a.weight({5, 12}), a.weight({12, 12}), a.constant({12}, 0), a.weight({12, 2})},
          {},
          {a.drawn({6, 4, 5}), a.below({6}, 2)},
          [](const Tensors& p, Tensors&, const Tensors& b) {
            Tensor h = full_of({6, 12}, 0, DType::kF32);
            for (int64_t step = 0; step < 4; ++step) {
              const Tensor x = ops::reshape(ops::slice(b[0], {1}, {step}, {step + 1}), {6, 5});
              h = ops::tanh(ops::matmul(x, p[0]) + ops::matmul(h, p[1]) + p[2]);
            }
            return class_loss(ops::matmul(h, p[3]), b[1]);
          }};
}

Net wide(uint64_t seed) {
  Arrays a(seed);
  return {"wide",
          Update::kSgd,
          0.5,
          1e-3,
          {a.drawn({50, 4}, 0.3), a.weight({4, 1}), a.constant({1}, 0)},
          {},
          {a.below({12, 5}, 50), a.below({12, 1}, 2).cast(DType::kF32)},
          [](const Tensors& p, Tensors&, const Tensors& b) {
            const Tensor sums = ops::sum(ops::embedding(b[0], p[0]), std::vector<int64_t>{1});
            return ops::binary_cross_entropy_with_logits(linear(sums, p[1], p[2]), b[1]);
          }};
}

Net half(uint64_t seed) {
  Net out = mlp(seed);
  out.name = "bfloat16";
  out.rule = Update::kMomentum;
  out.rate = 0.05;
  out.tolerance = 5e-2;
  out.loss = [](const Tensors& p, Tensors&, const Tensors& b) {
    const auto low = [](const Tensor& x) { return ops::cast(x, DType::kBF16); };
    const Tensor h = ops::relu(linear(low(b[0]), low(p[0]), low(p[1])));
    return class_loss(ops::cast(linear(h, low(p[2]), low(p[3])), DType::kF32), b[1]);
  };
  return out;
}

std::vector<Net> nets(uint64_t seed) {
  return {mlp(seed),       regression(seed), convolution(seed), batch_norm(seed),
          attention(seed), recurrent(seed),  wide(seed),        half(seed)};
}

size_t slots_of(Update rule) {
  return rule == Update::kSgd ? 0 : rule == Update::kMomentum ? 1 : 2;
}

/// The loss of a step, then parameters, slots and statistics after it, from these before it.
Tensors step_of(const Net& net, const Tensors& state, const Tensors& batch, const Tensor& number) {
  const size_t count = net.parameters.size(), slots = slots_of(net.rule);
  const Tensors parameters(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(count));
  Tensors statistics(state.begin() + static_cast<std::ptrdiff_t>(count * (1 + slots)), state.end());
  const Tensor loss = net.loss(parameters, statistics, batch);
  const Tensors gradients = autograd::grad({loss}, parameters);
  const autograd::NoGradScope none;
  const Tensor rate(Array::scalar(static_cast<float>(net.rate)));
  Tensors out = {loss};
  std::vector<Tensors> moved;
  for (size_t i = 0; i < count; ++i) {
    const auto slot = [&](size_t k) { return state[count * (1 + k) + i]; };
    const Tensor &p = parameters[i], &g = gradients[i];
    moved.push_back(net.rule == Update::kSgd ? ops::sgd_update(p, g, {}, rate)
                    : net.rule == Update::kMomentum
                        ? ops::momentum_update(p, g, slot(0), {}, rate)
                        : ops::adam_update(p, g, slot(0), slot(1), {}, rate, number));
  }
  for (size_t k = 0; k <= slots; ++k)
    for (const Tensors& each : moved) out.push_back(each[k]);
  out.insert(out.end(), statistics.begin(), statistics.end());
  return out;
}

std::vector<Array> first_state(const Net& net) {
  std::vector<Array> out = net.parameters;
  for (size_t k = 0; k < slots_of(net.rule); ++k)
    for (const Array& p : net.parameters) out.push_back(Array::zeros(p.dtype, p.shape));
  out.insert(out.end(), net.statistics.begin(), net.statistics.end());
  return out;
}

/// The losses of all steps, and the state after the last.
struct Course {
  std::vector<double> losses;
  std::vector<Array> state;
};

Array number_of(int step) { return Array::from<int64_t>({step + 1}, {}); }

Course train_eagerly(const Net& net, Device device) {
  Course out;
  runtime::EagerExecutor executor({.device = device});
  const InterpreterScope below(executor);
  autograd::Tape tape;
  const InterpreterScope above(tape);
  Tensors batch;
  for (const Array& x : net.batch) batch.emplace_back(x.to(device));
  for (const Array& x : first_state(net)) out.state.push_back(inspect::own_copy(x).to(device));
  for (int step = 0; step < net.steps; ++step) {
    Tensors state;
    for (size_t i = 0; i < out.state.size(); ++i) {
      const Tensor t(out.state[i]);
      state.push_back(i < net.parameters.size() ? autograd::variable(t) : t);
    }
    const Tensors after = step_of(net, state, batch, Tensor(number_of(step).to(device)));
    out.losses.push_back(after[0].array().on_host().number());
    for (size_t i = 0; i < out.state.size(); ++i) out.state[i] = after[i + 1].array();
  }
  for (Array& x : out.state) x = inspect::own_copy(x.on_host());
  return out;
}

Course train_compiled(const Net& net, Device device) {
  runtime::register_backends();
  Course out;
  const std::vector<Array> first = first_state(net);
  const auto function = std::make_shared<ir::Function>("training");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors state, batch;
    for (size_t i = 0; i < first.size(); ++i)
      state.push_back(tracer.input({ir::PortKind::kState, str("s", i)},
                                   {first[i].dtype, to_shape(first[i].shape)}));
    for (size_t i = 0; i < net.batch.size(); ++i)
      batch.push_back(tracer.input({ir::PortKind::kValue, str("x", i)},
                                   {net.batch[i].dtype, to_shape(net.batch[i].shape)}));
    const Tensor number = tracer.input({ir::PortKind::kValue, "step"}, {DType::kI64, {}});
    const Tensors after = step_of(net, state, batch, number);
    tracer.output({ir::PortKind::kValue, "loss"}, after[0]);
    for (size_t i = 0; i < first.size(); ++i)
      tracer.output({ir::PortKind::kState, str("s", i)}, after[i + 1]);
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  std::vector<Array> inputs;
  for (const Array& x : first) inputs.push_back(inspect::own_copy(x).to(device));
  for (const Array& x : net.batch) inputs.push_back(x);
  inputs.emplace_back();
  for (int step = 0; step < net.steps; ++step) {
    inputs.back() = number_of(step);
    out.losses.push_back(executable->run(inputs).at(0).number());
  }
  synchronize(device);
  for (size_t i = 0; i < first.size(); ++i)
    out.state.push_back(inspect::own_copy(inputs[i].on_host()));
  return out;
}

Course train(const Net& net, Mode mode, Device device) {
  return mode == Mode::kEager ? train_eagerly(net, device) : train_compiled(net, device);
}

bool same_bits(const Course& a, const Course& b) {
  if (std::memcmp(a.losses.data(), b.losses.data(), a.losses.size() * sizeof(double)) != 0)
    return false;
  for (size_t i = 0; i < a.state.size(); ++i)
    if (std::memcmp(a.state[i].raw(), b.state[i].raw(),
                    static_cast<size_t>(storage_bytes(a.state[i].dtype, a.state[i].size()))) != 0)
      return false;
  return true;
}

std::string compare_losses(const std::vector<double>& found, const std::vector<double>& expected,
                           double tolerance, const char* reference) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double allowed = tolerance * (1 + std::abs(expected[i]));
    if (std::abs(found[i] - expected[i]) <= allowed || found[i] == expected[i] ||
        (std::isnan(found[i]) && std::isnan(expected[i])))
      continue;
    const std::string is = str(found[i]), wanted = str(expected[i]);
    std::string bad = str("the loss of step ", i + 1, " is ", is, ", ", reference, " ", wanted);
    inspect::note_mismatch({bad, is, wanted, allowed});
    return bad;
  }
  return "";
}

bool is_repeatable(Device device) {
  return (device_properties(device).flags & PADDLE_DEVICE_REPEATABLE) != 0;
}

/// An operation as the network: the parameters are the floating inputs of its first sample.
std::optional<Net> net_of(const Op& op) {
  for (const std::string& sample : inspect::samples_of(op)) {
    const auto call = std::make_shared<inspect::NamedCall>(parse(op, {sample, false}));
    Net net;
    net.name = op.name();
    net.rate = 0.02;
    std::vector<size_t> places;  // of the parameters among the inputs
    const DType dtype = call->inputs().empty() ? DType::kF64 : DType::kF32;
    for (size_t i = 0; i < call->inputs().size(); ++i) {
      const Array& x = call->inputs()[i];
      if (x.dtype != DType::kF64 || !call->varies(i)) {
        net.batch.push_back(x);
        continue;
      }
      places.push_back(i);
      net.parameters.push_back(inspect::own_copy(x).cast(dtype));
    }
    if (places.empty()) continue;
    net.loss = [call, places](const Tensors& p, Tensors&, const Tensors& b) {
      Tensors inputs;
      size_t parameter = 0, other = 0;
      for (size_t i = 0; i < call->inputs().size(); ++i)
        inputs.push_back(parameter < places.size() && places[parameter] == i ? p[parameter++]
                                                                             : b[other++]);
      Tensor total;
      for (const Tensor& each : (*call)(inputs)) {
        if (!each.defined() || !is_float(each.dtype())) continue;
        const Tensor one = ops::mean(ops::square(each));
        total = total.defined() ? total + one : one;
      }
      if (!total.defined()) fail(ErrorCode::kUsage, "it has no floating result");
      return total;
    };
    return net;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> training_nets() {
  std::vector<std::string> out;
  for (const Net& net : nets(1)) out.push_back(net.name);
  return out;
}

std::string check_training(const std::string& device, const std::string& name, Mode mode,
                           const Extent& extent) {
  runtime::register_backends();
  const Device there = parse_device(device);
  const std::vector<Net> all = nets(extent.seed);
  const auto found_net = std::ranges::find(all, name, &Net::name);
  if (found_net == all.end()) fail(ErrorCode::kUsage, "unknown network '", name, "'");
  Net net = *found_net;
  if (extent.quick) net.steps = kQuickSteps;
  const Course expected = train(net, Mode::kEager, Device::cpu());
  if (!(expected.losses.back() < expected.losses.front()))
    return str("the CPU does not learn: the loss goes from ", expected.losses.front(), " to ",
               expected.losses.back());
  const Course found = train(net, mode, there);
  if (std::string bad =
          compare_losses(found.losses, expected.losses, net.tolerance, "that of the CPU");
      !bad.empty())
    return bad;
  const std::string course =
      str("the loss goes from ", expected.losses.front(), " to ", found.losses.back());
  if (extent.quick && mode == Mode::kEager) return kNote + course;
  const bool same = same_bits(found, train(net, mode, there));
  if (!same && is_repeatable(there))
    return "the device states that it is repeatable, and a second run has other bits";
  return str(kNote, course, "; a second run has ", same ? "the same" : "other", " bits");
}

std::string check_training_of(const Op& op, Mode mode) {
  runtime::register_backends();
  std::optional<Net> net;
  Course expected;
  try {
    net = net_of(op);
    if (!net) return str(kSkip, "its samples have no float64 tensor");
    Net reference = *net;
    reference.loss = [&](const Tensors& p, Tensors& s, const Tensors& b) {
      BodyOf body(op);
      const InterpreterScope scope(body);
      return net->loss(p, s, b);
    };
    std::optional<EngineKernelScope> engine;
    if (!op.def->provider || op.def->decompose) engine.emplace();
    expected = train(reference, Mode::kEager, Device::cpu());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    return str(kSkip, "it cannot be trained: ", first_line(e.message()));
  }
  return compare_losses(train(*net, mode, Device::cpu()).losses, expected.losses, net->tolerance,
                        "with the body");
}

}  // namespace paddle::conformance
