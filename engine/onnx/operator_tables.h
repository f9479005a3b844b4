#pragma once
// The operator tables: each .cc file in ops/, contrib/ and ml/ defines one, named after the file.
// A new table needs a declaration here and an entry in the list of its domain in
// operator_registry.cc.

#include <span>

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

using OperatorTable = std::span<const Operator>;

// ai.onnx (ops/)
OperatorTable activation_operators();
OperatorTable attention_operators();
OperatorTable cast_operators();
OperatorTable concat_split_pad_operators();
OperatorTable control_flow_operators();
OperatorTable conv_operators();
OperatorTable creation_operators();
OperatorTable detection_operators();
OperatorTable elementwise_operators();
OperatorTable experimental_operators();
OperatorTable image_decoder_operators();
OperatorTable indexing_operators();
OperatorTable linear_attention_operators();
OperatorTable loss_operators();
OperatorTable matmul_operators();
OperatorTable norm_operators();
OperatorTable pooling_operators();
OperatorTable quantization_operators();
OperatorTable recurrent_operators();
OperatorTable reduction_operators();
OperatorTable resize_operators();
OperatorTable sequence_operators();
OperatorTable shape_operators();
OperatorTable signal_operators();
OperatorTable sort_operators();
OperatorTable spatial_operators();
OperatorTable string_operators();

// ai.onnx.preview and ai.onnx.preview.training (ops/)
OperatorTable preview_operators();
OperatorTable training_operators();

// com.microsoft and com.microsoft.nchwc (contrib/)
OperatorTable contrib_attention_operators();
OperatorTable contrib_causal_conv_operators();
OperatorTable contrib_fused_operators();
OperatorTable contrib_gated_operators();
OperatorTable contrib_gated_delta_net_operators();
OperatorTable contrib_gather_packed_operators();
OperatorTable contrib_generation_operators();
OperatorTable contrib_grouped_query_attention_operators();
OperatorTable contrib_mixture_of_experts_operators();
OperatorTable contrib_nchwc_operators();
OperatorTable contrib_ngram_hash_operators();
OperatorTable contrib_quantized_operators();
OperatorTable contrib_rotary_embedding_operators();
OperatorTable contrib_spatial_operators();
OperatorTable contrib_text_operators();

// ai.onnx.ml (ml/)
OperatorTable ml_features_operators();
OperatorTable ml_labels_operators();
OperatorTable ml_linear_operators();
OperatorTable ml_svm_operators();
OperatorTable ml_trees_operators();

}  // namespace paddle::onnx
