#pragma once
// Sizes and initial values of the parameters that a layer makes, as the schema declares them
// (`weights` and `states` of an entry):
//
//   weight: xavier_uniform [out_channels, channels / groups, window(kernel_size)]
//
// A size is a product or quotient of integers and of
//
//   out_channels        an argument of the layer
//   features            the last axis of x
//   channels            the axis of x that holds its channels, by data_format
//   last(x1)            the last axis of an operand
//   dim(weight, 1)      an axis of an operand or of a parameter made before
//   window(kernel_size) one size per spatial axis, from a number or a list
//   shape(normalized_shape)  a list of sizes

#include <map>
#include <string>

#include "lang/layers/layer_call.h"

namespace paddle::lang {

/// Values of names that are not arguments, such as the features of an inner recurrent layer.
using SizeNames = std::map<std::string, int64_t, std::less<>>;

/// The shape of a parameter; kConfig, with the operation's name, for what has no known size.
Dims weight_shape(LayerCall& call, const WeightDef& weight, const SizeNames& names = {});
/// How the parameter starts unless the caller says otherwise.
Initializer weight_initializer(const LayerCall& call, const WeightDef& weight);

/// Makes the parameters that the caller did not pass: the first one always, the others unless the
/// first was passed or they are declined (`bias: false`).
void make_weights(LayerCall& call);

/// Size of the channel axis of x: axis 1, or the last one of a data format that ends in C.
int64_t channel_count(LayerCall& call);
/// The argument `data_format`, "NCHW" if there is none.
std::string data_format(const LayerCall& call);
/// Number of spatial axes of an operation with a data format.
size_t spatial_axes(const Op& op);

}  // namespace paddle::lang
