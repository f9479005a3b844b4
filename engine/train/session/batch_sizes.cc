#include "train/session/batch_sizes.h"

#include <algorithm>

#include "ir/tracer.h"
#include "ops/core/op.h"

namespace paddle::train {
namespace {

const AttrValue* find_attr(const OpCall& call, std::string_view name) {
  const int at = call.op.attr_index(name);
  return at < 0 ? nullptr : &call.attrs[static_cast<size_t>(at)];
}

bool is_set(const OpCall& call, std::string_view name) {
  const AttrValue* value = find_attr(call, name);
  return value && !value->is_none() && value->as_bool();
}

size_t channel_axis(const OpCall& call, size_t rank) {
  const AttrValue* format = find_attr(call, "data_format");
  const bool last = format && !format->is_none() && format->as_string().ends_with('C');
  return last && rank > 2 ? rank - 1 : 1;
}

}  // namespace

bool uses_batch_statistics(const OpCall& call) {
  return call.op.name() == "batch_norm" && is_set(call, "training") &&
         !is_set(call, "use_global_stats");
}

Tensors NormWatch::apply(const OpCall& call) {
  const std::string_view name = call.op.name();
  const bool batch = uses_batch_statistics(call);
  const bool instance = name == "instance_norm" && is_set(call, "use_input_stats");
  const bool group = name == "group_norm";
  if ((batch || instance || group) && call.operands[0].ndim() >= 2) {
    const Shape& x = call.operands[0].shape();
    const size_t channels = channel_axis(call, x.size());
    Dim values = batch ? x[0] : Dim(1);
    for (size_t i = 1; i < x.size(); ++i)
      if (i != channels) values = values * x[i];
    if (group) values = values * floor_divide(x[channels], find_attr(call, "num_groups")->as_int());
    calls_.push_back({std::string(name), ir::LocationScope::current(),
                      batch   ? "channel"
                      : group ? "group of a sample's channels"
                              : "channel of a sample",
                      values});
  }
  const ScopedInterpreter below(next());
  return next().apply(call);
}

BatchSizes batch_sizes(const data::Loader& loader, int64_t batch, int64_t batches) {
  BatchSizes out;
  out.samples = loader.samples_per_epoch();
  if (out.samples >= batch) out.full = batch;
  if (batches >= loader.batches_per_epoch()) out.last = out.samples % batch;
  return out;
}

std::set<int64_t> micro_batch_sizes(int64_t samples, int64_t accumulate) {
  const int64_t parts = std::max<int64_t>(1, std::min(accumulate, samples));
  std::set<int64_t> out;
  for (int64_t i = 0; i < parts; ++i) out.insert(samples * (i + 1) / parts - samples * i / parts);
  return out;
}

int64_t largest_micro_batch(int64_t samples, int64_t accumulate) {
  return *micro_batch_sizes(samples, accumulate).rbegin();
}

}  // namespace paddle::train
