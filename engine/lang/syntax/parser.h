#pragma once
// The parser of the body language: scalars of a model file to syntax trees. Every entry throws
// kConfig at the first thing that does not fit, with what was expected and what was found.

#include "lang/config_types.h"
#include "lang/syntax/syntax.h"

namespace paddle::lang {

/// A whole body: statements in lines.
Body parse_body(const Node& scalar);
/// One expression. Calls in it are appended to `sites` where given, else numbered from 0.
ExprPtr parse_expression(const Node& scalar, std::vector<CallSite>* sites = nullptr);
/// A block's header: `conv_bn(x, channels, stride=1)`.
/// Signatures of our own (layers in the schema) may call a parameter `training`.
Signature parse_signature(const Node& key, bool reserved_words = false);
/// An input's type: `float32[batch, 1, 28, 28]`.
InputType parse_input_type(const Node& scalar);

}  // namespace paddle::lang
