#include "onnx/operator_registry.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/graph/graph_format.h"
#include "onnx/operator_tables.h"

namespace paddle::onnx {
namespace {

/// Operators of one domain by name.
using Table = std::unordered_map<std::string_view, std::vector<const Operator*>>;

void add(Table& table, OperatorTable operators) {
  for (const Operator& op : operators) table[op.name].push_back(&op);
}

const std::map<std::string, Table>& tables() {
  static const auto* const kTables = [] {
    auto* all = new std::map<std::string, Table>;
    for (const auto operators : {activation_operators,
                                 attention_operators,
                                 cast_operators,
                                 concat_split_pad_operators,
                                 control_flow_operators,
                                 conv_operators,
                                 creation_operators,
                                 detection_operators,
                                 elementwise_operators,
                                 experimental_operators,
                                 image_decoder_operators,
                                 indexing_operators,
                                 linear_attention_operators,
                                 loss_operators,
                                 matmul_operators,
                                 norm_operators,
                                 pooling_operators,
                                 quantization_operators,
                                 recurrent_operators,
                                 reduction_operators,
                                 resize_operators,
                                 sequence_operators,
                                 shape_operators,
                                 signal_operators,
                                 sort_operators,
                                 spatial_operators,
                                 string_operators})
      add((*all)[""], operators());
    add((*all)["ai.onnx.preview"], preview_operators());
    add((*all)["ai.onnx.preview.training"], training_operators());
    for (const auto operators :
         {contrib_attention_operators, contrib_causal_conv_operators, contrib_fused_operators,
          contrib_gated_operators, contrib_gated_delta_net_operators,
          contrib_gather_packed_operators, contrib_generation_operators,
          contrib_grouped_query_attention_operators, contrib_mixture_of_experts_operators,
          contrib_ngram_hash_operators, contrib_quantized_operators,
          contrib_rotary_embedding_operators, contrib_spatial_operators, contrib_text_operators})
      add((*all)["com.microsoft"], operators());
    add((*all)["com.microsoft.nchwc"], contrib_nchwc_operators());
    for (const auto operators : {ml_features_operators, ml_labels_operators, ml_linear_operators,
                                 ml_svm_operators, ml_trees_operators})
      add((*all)["ai.onnx.ml"], operators());
    return all;
  }();
  return *kTables;
}

/// Null if unknown. Sets `opset` to the version of the domain that was searched.
const Operator* lookup(const formats::onnx::Node& node, int64_t& opset) {
  const auto table = tables().find(node.domain);
  if (table == tables().end()) return added_operator(node);
  auto found = table->second.find(node.op_type);
  if (found == table->second.end()) {
    // com.microsoft also names newer versions of standard operators.
    if (node.domain != "com.microsoft") return nullptr;
    const Table& main = tables().at("");
    found = main.find(node.op_type);
    if (found == main.end()) return nullptr;
    opset = kNewestOpset;
  }
  const Operator* best = nullptr;
  for (const Operator* op : found->second)
    if (op->since <= opset && (!best || op->since > best->since)) best = op;
  return best;
}

}  // namespace

bool is_known_operator(const formats::onnx::Node& node, int64_t opset) {
  return lookup(node, opset) != nullptr;
}

bool is_random(const formats::onnx::Node& node) {
  if (const GraphFormat* format = added_format(node.domain))
    return format->properties(node).is_random;
  return node.op_type.starts_with("Random") || node.op_type == "Bernoulli" ||
         node.op_type == "Multinomial" || node.op_type == "Dropout";
}

const Operator& find_operator(const formats::onnx::Node& node, int64_t& opset) {
  if (const Operator* op = lookup(node, opset)) return *op;
  std::vector<std::string> names;
  for (const auto& [domain, table] : tables())
    for (const auto& entry : table)
      names.push_back(domain.empty() ? std::string(entry.first) : str(domain, ".", entry.first));
  const std::string type = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  fail(ErrorCode::kModel, "node '", node.name, "' uses the unknown operator ", type, " of opset ",
       opset, did_you_mean(type, names));
}

}  // namespace paddle::onnx
