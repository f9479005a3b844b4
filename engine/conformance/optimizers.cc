// Optimizers and schedules of plug-ins.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/passes.h"
#include "conformance/readers.h"
#include "conformance/results.h"
#include "conformance/train_parts.h"
#include "inspect/both_modes.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

using inspect::Mode;

/// An update of one parameter: the parameter and its states, then the master if there is one.
struct UpdateState {
  std::vector<Array> values;
  bool has_master = false;
};

class Updates {
 public:
  explicit Updates(const optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  UpdateState begin(const Array& parameter, const Dims& shape) const {
    UpdateState out{{parameter}};
    for (const optim::StateSlot& slot : optimizer_.slots("w", shape)) {
      Array state = Array::empty(DType::kF32, slot.shape.value_or(shape));
      std::fill_n(state.data<float>(), state.size(), static_cast<float>(slot.initial));
      out.values.push_back(slot.is_copy ? inspect::own_copy(parameter.cast(DType::kF32)) : state);
    }
    return out;
  }

  void step(UpdateState& state, const Array& gradient, int64_t number, Mode mode,
            bool skip = false) const {
    const TensorFn update = [&](const Tensors& x) {
      const size_t states = state.values.size() - (state.has_master ? 2 : 1);
      optim::UpdateInputs inputs;
      inputs.lr = x[x.size() - 2];
      inputs.step = x[x.size() - 1];
      if (state.has_master) inputs.master = x[1 + states];
      if (skip) inputs.skip = Tensor(Array::scalar(true));
      return optimizer_.update(
          "w", x[0], x[x.size() - 3],
          Tensors(x.begin() + 1, x.begin() + 1 + static_cast<std::ptrdiff_t>(states)), inputs);
    };
    std::vector<Array> inputs = state.values;
    inputs.push_back(gradient);
    inputs.push_back(Array::scalar(static_cast<float>(optimizer_.options().lr)));
    inputs.push_back(Array::from<int64_t>({number}, {}));
    const Results found = inspect::run(mode, update, inputs);
    for (size_t i = 0; i < state.values.size(); ++i) state.values[i] = found.at(i).value();
  }

 private:
  const optim::Optimizer& optimizer_;
};

/// Numbers of a power of two below them, which bfloat16 holds without rounding.
Array exact_numbers(const Dims& shape, int64_t first) {
  Array out = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<float>()[i] = static_cast<float>((i * 7 + first * 5) % 31 - 15) / 16;
  return out;
}

std::string compare_updated(const UpdateState& found, const UpdateState& expected,
                            double tolerance) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const std::string bad =
        inspect::difference(found.values[i], expected.values[i], {tolerance, tolerance});
    if (!bad.empty()) return str(i == 0 ? "the parameter" : str("state ", i - 1), ": ", bad);
  }
  return "";
}

constexpr int64_t kUpdates = 10;
const Dims kUpdatedShape = {6, 5};

std::string check_both_modes(const Updates& updates) {
  UpdateState eager = updates.begin(exact_numbers(kUpdatedShape, 1), kUpdatedShape),
              compiled = eager;
  for (int64_t step = 1; step <= kUpdates; ++step) {
    const Array gradient = exact_numbers(kUpdatedShape, step + 1);
    updates.step(eager, gradient, step, Mode::kEager);
    updates.step(compiled, gradient, step, Mode::kCompiled);
    for (const Array& each : eager.values)
      for (int64_t i = 0; i < each.size(); ++i)
        if (!std::isfinite(each.number(i))) return str("not finite after ", step, " updates");
    if (const std::string bad = compare_updated(compiled, eager, 2e-5); !bad.empty())
      return str("compiled, after ", step, " updates: ", bad);
  }
  return "";
}

/// Without `whole_parameters`, as ranks do it that hold a share of each parameter.
std::string check_shards(const optim::Optimizer& optimizer, const Updates& updates) {
  if (optimizer.needs_whole_parameters())
    return str(kSkip, "it states that it needs whole parameters");
  const auto rows = [](const Array& all, int64_t from, int64_t to) {
    Array out = Array::empty(DType::kF32, {to - from, kUpdatedShape[1]});
    std::memcpy(out.raw(), all.data<float>() + from * kUpdatedShape[1],
                static_cast<size_t>(out.size()) * 4);
    return out;
  };
  const int64_t middle = 2, end = kUpdatedShape[0];
  const Array first = exact_numbers(kUpdatedShape, 1);
  UpdateState whole = updates.begin(first, kUpdatedShape);
  UpdateState upper = updates.begin(rows(first, 0, middle), {middle, kUpdatedShape[1]});
  UpdateState lower = updates.begin(rows(first, middle, end), {end - middle, kUpdatedShape[1]});
  for (int64_t step = 1; step <= kUpdates; ++step) {
    const Array gradient = exact_numbers(kUpdatedShape, step + 1);
    updates.step(whole, gradient, step, Mode::kCompiled);
    updates.step(upper, rows(gradient, 0, middle), step, Mode::kCompiled);
    updates.step(lower, rows(gradient, middle, end), step, Mode::kCompiled);
  }
  for (size_t i = 0; i < whole.values.size(); ++i)
    for (const auto& [found, from, to] : {std::tuple(upper.values[i], int64_t{0}, middle),
                                          std::tuple(lower.values[i], middle, end)})
      if (const std::string bad =
              inspect::difference(found, rows(whole.values[i], from, to), {1e-6, 1e-7});
          !bad.empty())
        return str("rows ", from, " to ", to - 1,
                   " depend on the others, without whole_parameters: ", bad);
  return "";
}

/// A skipped update changes nothing.
std::string check_skip(const Updates& updates) {
  UpdateState state = updates.begin(exact_numbers(kUpdatedShape, 1), kUpdatedShape);
  updates.step(state, exact_numbers(kUpdatedShape, 2), 1, Mode::kCompiled);
  UpdateState after = state;
  updates.step(after, exact_numbers(kUpdatedShape, 3), 2, Mode::kCompiled, /*skip=*/true);
  const std::string bad = compare_updated(after, state, 0);
  return bad.empty() ? "" : "a skipped update changes " + bad;
}

/// A parameter of 16 bits with a copy in float32 takes the state of one in float32.
std::string check_half(const Updates& updates) {
  const Array first = exact_numbers(kUpdatedShape, 1);
  UpdateState full = updates.begin(first, kUpdatedShape), half = full;
  half.values[0] = first.cast(DType::kBF16);
  half.values.push_back(first);
  half.has_master = true;
  for (int64_t step = 1; step <= kUpdates; ++step) {
    const Array gradient = exact_numbers(kUpdatedShape, step + 1);
    updates.step(full, gradient, step, Mode::kCompiled);
    updates.step(half, gradient.cast(DType::kBF16), step, Mode::kCompiled);
  }
  const std::string bad = inspect::difference(half.values.back(), full.values[0], {1e-6, 1e-7});
  return bad.empty() ? "" : "a parameter of bfloat16 with a copy in float32: " + bad;
}

/// The square of the distance to a point falls.
std::string check_descends(const Updates& updates, const Extent& extent) {
  const Array target = exact_numbers(kUpdatedShape, 3);
  UpdateState state = updates.begin(exact_numbers(kUpdatedShape, 1), kUpdatedShape);
  const auto gradient = [&] {
    Array out = Array::empty(DType::kF32, kUpdatedShape);
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<float>()[i] = static_cast<float>(state.values[0].number(i) - target.number(i));
    return out;
  };
  const auto distance = [](const Array& x) {
    return std::inner_product(x.data<float>(), x.data<float>() + x.size(), x.data<float>(), 0.0);
  };
  const double before = distance(gradient());
  const int64_t steps = extent.quick ? 30 : 200;
  for (int64_t step = 1; step <= steps; ++step)
    updates.step(state, gradient(), step, Mode::kCompiled);
  const double after = distance(gradient());
  return after < before ? ""
                        : str("after ", steps,
                              " updates of the default rate the square of a "
                              "distance is ",
                              after, ", it was ", before);
}

}  // namespace

std::optional<config::Node> own_keys(const config::Schema& schema,
                                     const std::vector<std::string>& given, std::string& why) {
  config::Node map = config::parse_document("{}", "--key");
  for (const std::string& text : given) {
    const auto [name, value] = key_and_value(text);
    if (schema.find(name)) map.set(name, config::make_scalar(value, map.source));
  }
  for (const config::Schema::Key& key : schema.keys())
    if (key.spec.is_required() && !map.find(key.name)) {
      why = str(kSkip, "it needs the key '", key.name, "': --key ", key.name, "=VALUE");
      return std::nullopt;
    }
  return map;
}

std::vector<std::string> optimizer_checks() {
  return {"modes", "shards", "skip", "half", "descends"};
}

std::string check_optimizer(const std::string& name, const std::vector<std::string>& keys,
                            const std::string& check, const Extent& extent) {
  runtime::register_backends();
  const auto kind = optim::optimizer_kinds().find(name);
  if (!kind) return "it is not registered";
  std::string why;
  const auto given = own_keys(kind->keys, keys, why);
  if (!given) return why;
  optim::OptimizerOptions options;
  options.rule = optim::make_rule(name, config::dump_yaml(*given));
  options.lr = std::stod(kind->lr);
  const optim::Optimizer optimizer(options);
  const Updates updates(optimizer);
  if (check == "modes") return check_both_modes(updates);
  if (check == "shards") return check_shards(optimizer, updates);
  if (check == "skip") return check_skip(updates);
  if (check == "half") return check_half(updates);
  return check_descends(updates, extent);
}

std::string check_schedule(const std::string& name, const std::vector<std::string>& keys) {
  const auto kind = optim::schedule_kinds().find(name);
  if (!kind) return "it is not registered";
  std::string why;
  auto map = own_keys(kind->keys, keys, why);
  if (!map) return why;
  map->set("name", config::make_scalar(name, map->source));
  const optim::Schedule schedule = optim::make_schedule(config::dump_yaml(*map));
  for (const int64_t length : {1, 7, 100, 10000})
    for (int64_t step = 0; step < length + 5; step += 1 + length / 50) {
      const double factor = optim::schedule_factor(schedule, step, length);
      if (!(factor >= 0) || !std::isfinite(factor))
        return str("the factor of step ", step, " of ", length, " is ", factor);
      if (optim::schedule_factor(schedule, step, length) != factor)
        return str("the factor of step ", step, " of ", length, " differs when asked again");
    }
  return "";
}

}  // namespace paddle::conformance
