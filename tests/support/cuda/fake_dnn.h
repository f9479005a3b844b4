#pragma once
// Graphs of cuDNN as the stand-in computes them: one operation after the other, in float32, with
// values between operations rounded to the types of their tensors.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "fake_library.h"
#include "kernels/cuda/abi/cudnn.h"

namespace {

using namespace paddle::cuda;

struct DnnTensor {
  int64_t uid = 0;
  int type = 0;
  std::vector<int64_t> dims, strides;
  bool is_virtual = false, by_value = false;

  int64_t size() const {
    int64_t out = 1;
    for (const int64_t dim : dims) out *= dim;
    return out;
  }
  /// Elements from the first to the last one in memory.
  int64_t extent() const {
    int64_t out = 1;
    for (size_t i = 0; i < dims.size(); ++i) out += (dims[i] - 1) * strides[i];
    return out;
  }
  int64_t offset(int64_t index) const {
    int64_t out = 0;
    for (size_t i = dims.size(); i-- > 0; index /= dims[i]) out += index % dims[i] * strides[i];
    return out;
  }
};

struct DnnOperation {
  int kind = 0;  ///< its descriptor's type
  int mode = 0, axis = 0;
  std::vector<DnnTensor> tensors;  ///< inputs, then the output; those that are absent have uid 0
  std::vector<int64_t> before, after, steps, dilations;
};

inline size_t element_bytes(int type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4
         : type == CUDNN_DATA_BOOLEAN                         ? 1
                                                              : 2;
}
inline Element element_type(int type) {
  return type == CUDNN_DATA_HALF       ? Element::kF16
         : type == CUDNN_DATA_BFLOAT16 ? Element::kBF16
                                       : Element::kF32;
}

/// Computes a graph whose tensors are at these addresses.
class DnnRun {
 public:
  DnnRun(const std::vector<DnnOperation>& operations, const std::map<int64_t, void*>& addresses)
      : operations_(operations), addresses_(addresses) {}

  void run() {
    for (const DnnOperation& operation : operations_) compute(operation);
  }

 private:
  using Values = std::vector<float>;

  /// Elements in the order of their indices.
  Values load_all(const DnnTensor& t) const {
    Values out(static_cast<size_t>(t.size()));
    if (const auto it = between_.find(t.uid); it != between_.end()) {
      for (int64_t i = 0; i < t.size(); ++i)
        out[static_cast<size_t>(i)] = it->second[static_cast<size_t>(t.offset(i))];
      return out;
    }
    const void* const at = addresses_.at(t.uid);
    for (int64_t i = 0; i < t.size(); ++i)
      out[static_cast<size_t>(i)] = load(element_type(t.type), at, t.offset(i));
    return out;
  }
  void store_all(const DnnTensor& t, const Values& values) {
    if (!t.is_virtual) {
      void* const at = addresses_.at(t.uid);
      for (int64_t i = 0; i < t.size(); ++i)
        store(element_type(t.type), at, t.offset(i), values[static_cast<size_t>(i)]);
      return;
    }
    Values& kept = between_[t.uid];
    kept.assign(static_cast<size_t>(t.extent()), NAN);
    for (int64_t i = 0; i < t.size(); ++i) {
      float value = values[static_cast<size_t>(i)];
      if (t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16) {
        uint16_t bits = 0;
        store(element_type(t.type), &bits, 0, value);
        value = load(element_type(t.type), &bits, 0);
      }
      kept[static_cast<size_t>(t.offset(i))] = value;
    }
  }

  void compute(const DnnOperation& op) {
    switch (op.kind) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolve(op);
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return multiply(op);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return apply(op);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return fold(op);
      default:
        return view(op);
    }
  }

  /// Tensors: the weight, the input and the output, of which one is computed.
  void convolve(const DnnOperation& op) {
    const DnnTensor &w = op.tensors[0], &x = op.tensors[1], &y = op.tensors[2];
    const size_t axes = w.dims.size() - 2;
    const int which = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 2
                      : op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                                : 0;
    Values all[3];
    for (int i = 0; i < 3; ++i)
      all[i] = i == which ? Values(static_cast<size_t>(op.tensors[static_cast<size_t>(i)].size()))
                          : load_all(op.tensors[static_cast<size_t>(i)]);
    int64_t taps = 1, places = 1;
    for (size_t a = 0; a < axes; ++a) {
      taps *= w.dims[a + 2];
      places *= y.dims[a + 2];
    }
    const int64_t channels = w.dims[1], outs = y.dims[1], groups = x.dims[1] / channels;
    for (int64_t n = 0; n < x.dims[0]; ++n)
      for (int64_t o = 0; o < outs; ++o)
        for (int64_t place = 0; place < places; ++place)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t tap = 0; tap < taps; ++tap) {
              int64_t rest_place = place, rest_tap = tap, at = 0, stride = 1;
              bool inside = true;
              for (size_t a = axes; a-- > 0;) {
                const int64_t p = rest_place % y.dims[a + 2], k = rest_tap % w.dims[a + 2];
                rest_place /= y.dims[a + 2];
                rest_tap /= w.dims[a + 2];
                const int64_t i = p * op.steps[a] - op.before[a] + k * op.dilations[a];
                inside = inside && i >= 0 && i < x.dims[a + 2];
                at += i * stride;
                stride *= x.dims[a + 2];
              }
              if (!inside) continue;
              const int64_t channel = o / (outs / groups) * channels + c;
              float& x_value = all[1][static_cast<size_t>((n * x.dims[1] + channel) * stride + at)];
              float& w_value = all[0][static_cast<size_t>((o * channels + c) * taps + tap)];
              float& y_value = all[2][static_cast<size_t>((n * outs + o) * places + place)];
              if (which == 2) y_value += x_value * w_value;
              if (which == 1) x_value += y_value * w_value;
              if (which == 0) w_value += y_value * x_value;
            }
    store_all(op.tensors[static_cast<size_t>(which)], all[which]);
  }

  void multiply(const DnnOperation& op) {
    const DnnTensor &a = op.tensors[0], &b = op.tensors[1], &c = op.tensors[2];
    const Values x = load_all(a), y = load_all(b);
    const size_t rank = a.dims.size();
    const int64_t m = a.dims[rank - 2], k = a.dims[rank - 1], n = b.dims[rank - 1];
    Values out(static_cast<size_t>(c.size()));
    for (int64_t batch = 0; batch < c.size() / (m * n); ++batch)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          float sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += x[static_cast<size_t>((batch * m + i) * k + l)] *
                   y[static_cast<size_t>((batch * k + l) * n + j)];
          out[static_cast<size_t>((batch * m + i) * n + j)] = sum;
        }
    store_all(c, out);
  }

  /// The index of an element of `small`, whose axes of size 1 are broadcast, by that in `large`.
  static size_t broadcast(const DnnTensor& small, const DnnTensor& large, int64_t index) {
    int64_t out = 0, stride = 1;
    for (size_t i = large.dims.size(); i-- > 0; index /= large.dims[i]) {
      if (small.dims[i] != 1) out += index % large.dims[i] * stride;
      stride *= small.dims[i];
    }
    return static_cast<size_t>(out);
  }

  void apply(const DnnOperation& op) {
    const DnnTensor &x = op.tensors[0], &b = op.tensors[1], &t = op.tensors[2], &y = op.tensors[3];
    const Values first = load_all(x), second = b.uid ? load_all(b) : Values(),
                 third = t.uid ? load_all(t) : Values();
    Values out(static_cast<size_t>(y.size()));
    for (int64_t i = 0; i < y.size(); ++i) {
      const float u = first[broadcast(x, y, i)];
      const float v = b.uid ? second[broadcast(b, y, i)] : 0;
      float& result = out[static_cast<size_t>(i)];
      switch (op.mode) {
        case CUDNN_POINTWISE_ADD:
          result = u + v;
          break;
        case CUDNN_POINTWISE_MUL:
          result = u * v;
          break;
        case CUDNN_POINTWISE_SUB:
          result = u - v;
          break;
        case CUDNN_POINTWISE_DIV:
          result = u / v;
          break;
        case CUDNN_POINTWISE_EXP:
          result = std::exp(u);
          break;
        case CUDNN_POINTWISE_LOG:
          result = std::log(u);
          break;
        case CUDNN_POINTWISE_CMP_GE:
          result = u >= v ? 1 : 0;
          break;
        case CUDNN_POINTWISE_BINARY_SELECT:
          result = third[broadcast(t, y, i)] != 0 ? u : v;
          break;
        default: {  // CUDNN_POINTWISE_GEN_INDEX
          int64_t rest = i;
          for (size_t a = y.dims.size(); a-- > static_cast<size_t>(op.axis) + 1;) rest /= y.dims[a];
          result = static_cast<float>(rest % y.dims[static_cast<size_t>(op.axis)]);
        }
      }
    }
    store_all(y, out);
  }

  void fold(const DnnOperation& op) {
    const DnnTensor &x = op.tensors[0], &y = op.tensors[1];
    const Values values = load_all(x);
    const bool is_max = op.mode == CUDNN_REDUCE_TENSOR_MAX;
    Values out(static_cast<size_t>(y.size()), is_max ? -INFINITY : 0);
    for (int64_t i = 0; i < x.size(); ++i) {
      float& result = out[broadcast(y, x, i)];
      const float value = values[static_cast<size_t>(i)];
      result = is_max ? std::max(result, value) : result + value;
    }
    store_all(y, out);
  }

  /// The memory of x, read with the strides of y.
  void view(const DnnOperation& op) {
    const DnnTensor &x = op.tensors[0], &y = op.tensors[1];
    DnnTensor read = y;
    read.uid = x.uid;
    read.type = x.type;
    store_all(y, load_all(read));
  }

  const std::vector<DnnOperation>& operations_;
  const std::map<int64_t, void*>& addresses_;
  std::map<int64_t, Values> between_;  ///< by offset, as strides place elements
};

}  // namespace
