#include "tune/parallel/run_shape.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "data/open_data.h"
#include "ir/module.h"
#include "train/job/trainer.h"

namespace paddle::tune {
namespace {

using train::RunConfig;

/// Parameters whose paths have a number: "layer.3.attention.weight" belongs to block 3 of "layer".
struct Blocks {
  std::set<std::string> numbers;
  double elements = 0;
  std::vector<Dims> matrices;  ///< of block 0
};

[[noreturn]] void reject(const std::string& config, const std::string& why) {
  throw Error(ErrorCode::kConfig,
              why +
                  "; planning needs a transformer of repeated blocks, or a file with "
                  "'transformer: {layers: …, hidden: …, …}'",
              {config, 0, 0});
}

/// The repeated blocks with the most parameters, and the matrices outside of them.
std::pair<Blocks, std::vector<Dims>> find_blocks(const ir::Module& module,
                                                 const std::string& config) {
  std::map<std::string, Blocks> groups;
  std::vector<std::pair<std::string, Dims>> all;
  for (const ir::Slot& slot : module.parameters) {
    const Dims dims = concrete(slot.type.shape);
    std::string prefix;
    for (const std::string& part : split(slot.name, '.')) {
      const bool number = !part.empty() && std::all_of(part.begin(), part.end(), ::isdigit);
      if (number) {
        Blocks& group = groups[prefix];
        group.numbers.insert(part);
        group.elements += static_cast<double>(element_count(std::span<const int64_t>(dims)));
        if (part == "0" && dims.size() == 2) group.matrices.push_back(dims);
        break;
      }
      prefix += part + ".";
    }
    if (dims.size() == 2) all.emplace_back(slot.name, dims);
  }
  const auto largest = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.elements < b.second.elements; });
  if (largest == groups.end() || largest->second.matrices.empty())
    reject(config, "the model has no repeated blocks with matrices");
  std::vector<Dims> others;
  for (const auto& [name, dims] : all)
    if (!name.starts_with(largest->first)) others.push_back(dims);
  return {largest->second, others};
}

/// The first attention operation of the step.
const ir::Operation* find_attention(const ir::Module& module) {
  const ir::Operation* found = nullptr;
  for (const auto& function : module.functions)
    ir::for_each_operation(function->body, [&](const ir::Operation& operation) {
      if (!found && operation.op->name() == "attention") found = &operation;
    });
  return found;
}

/// The heads of the keys and values: those of the product that makes the values, since attention
/// may read them repeated for each group of queries.
int64_t value_heads(const ir::Operation& attention, int64_t heads, int64_t head_size) {
  const ir::Value* value = attention.operands[2];
  for (int steps = 0; steps < 64 && value && value->producer; ++steps) {
    const ir::Operation& producer = *value->producer;
    const std::string_view name = producer.op->name();
    if (name == "linear" || name == "matmul") {
      const auto width = producer.results[0]->type.shape.back().constant();
      if (!width || *width % head_size != 0) break;
      // Queries, keys and values may come from one product.
      const int64_t all = *width / head_size;
      return all > heads ? (all - heads) / 2 : all;
    }
    value = producer.operands.empty() ? nullptr : producer.operands[0];
  }
  return attention.operands[1]->type.shape[2].constant().value_or(heads);
}

/// The size of a dim of the step, from the samples of the data where it is a symbol.
int64_t size_of(const Dim& dim, const ir::Module& module, const RunConfig& config) {
  if (const auto size = dim.constant()) return *size;
  const data::OpenData data = data::open_data(config.document, config.data);
  const std::vector<Dims> samples = data.train_loader->sample_shapes();
  const auto& fields = data.train_loader->fields();
  const ir::Function& function = *module.functions.front();
  for (size_t i = 0; i < function.inputs.size(); ++i)
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].name != function.inputs[i].name) continue;
      const Shape& shape = function.body.arguments[i]->type.shape;
      for (size_t d = 1; d < shape.size() && d <= samples[f].size(); ++d)
        if (shape[d].same(dim)) return samples[f][d - 1];
    }
  reject(config.file, str("the length of sequences, ", dim, ", is not a dim of the data"));
}

}  // namespace

Transformer transformer_of_run(const std::string& path, const std::vector<std::string>& overrides) {
  const RunConfig config = train::read_config(path, overrides);
  train::TrainOptions options;
  options.benchmark = 1;  // no folder, no validation data
  options.dry_run = true;
  train::TrainObserver observer;
  train::Trainer trainer(train::read_config(path, overrides), options, observer);
  trainer.prepare();
  const ir::Module& module = trainer.module();
  const auto [blocks, others] = find_blocks(module, path);
  const ir::Operation* const attention = find_attention(module);
  if (!attention) reject(path, "the model has no attention");

  Transformer m;
  m.name = config.name;
  m.layers = static_cast<int64_t>(blocks.numbers.size());
  const Shape& query = attention->operands[0]->type.shape;
  m.heads = query[2].constant().value_or(0);
  m.head_size = query[3].constant().value_or(0);
  if (m.heads == 0 || m.head_size == 0) reject(path, "the number of attention heads varies");
  m.kv_heads = std::clamp<int64_t>(value_heads(*attention, m.heads, m.head_size), 1, m.heads);
  m.sequence = size_of(query[1], module, config);
  // The width of the residual stream is the size that most matrices of a block share.
  std::map<int64_t, int> uses;
  double elements = 0;
  for (const Dims& dims : blocks.matrices) {
    elements += static_cast<double>(dims[0] * dims[1]);
    for (const int64_t d : std::set<int64_t>(dims.begin(), dims.end())) ++uses[d];
  }
  m.hidden = std::max_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
  // The rest of a block is the feed-forward: two or three matrices of hidden and ffn.
  const double feed_forward = elements - m.attention_parameters();
  const int64_t fused = m.head_size * (m.heads + 2 * m.kv_heads);
  for (const Dims& dims : blocks.matrices)
    for (const int64_t d : dims)
      if (d != m.hidden && d != fused) m.ffn = std::max(m.ffn, d);
  if (m.ffn == 0 || feed_forward <= 0) m.ffn = m.hidden;
  const auto hidden = static_cast<double>(m.hidden);
  m.gated = std::lround(feed_forward / (hidden * static_cast<double>(m.ffn))) >= 3;
  for (const Dims& dims : others)
    if (dims[0] == m.hidden || dims[1] == m.hidden)
      m.vocabulary = std::max(m.vocabulary, dims[0] == m.hidden ? dims[1] : dims[0]);
  m.vocabulary = std::max<int64_t>(1, m.vocabulary);
  m.tied = std::ranges::count_if(others, [&](const Dims& dims) {
             return dims == Dims{m.hidden, m.vocabulary} || dims == Dims{m.vocabulary, m.hidden};
           }) < 2;
  m.batch = config.data.loader.batch_size;
  m.precision = train::precision_name(config);
  if (m.precision == "float64") m.precision = "float32";
  return m;
}

}  // namespace paddle::tune
