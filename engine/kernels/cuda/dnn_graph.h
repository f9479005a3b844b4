#pragma once
// Graphs of operations that cuDNN computes as one, and plans of how it does.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/abi/cudnn.h"
#include "kernels/cuda/stream.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace paddle::cuda {

/// A call with its algorithm, on a GPU.
class DnnPlan {
 public:
  ~DnnPlan();
  DnnPlan(const DnnPlan&) = delete;
  DnnPlan& operator=(const DnnPlan&) = delete;

  size_t workspace_bytes() const;
  /// Queues the graph. `addresses` are those of its tensors in memory, in the order in which they
  /// were added, aligned to kDnnAlignment bytes. kDevice if the library fails.
  void execute(paddle_stream stream, std::span<const void* const> addresses,
               std::byte* workspace) const;

 private:
  friend class DnnGraph;
  struct State;
  explicit DnnPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline constexpr uintptr_t kDnnAlignment = 16;

/// Whether cuDNN is installed and can be used on the GPU.
bool has_dnn(int device);
/// The library's type of elements; -1 if it has none that we use.
int dnn_type(DType type);

enum class DnnConvolution : uint8_t { kForward, kInputGrad, kWeightGrad };

/// By axis of a convolution.
struct DnnWindow {
  std::vector<int64_t> before, after, strides, dilations;  ///< before, after: padding
};

/// A graph as it is described; tensors are numbers.
class DnnGraph {
 public:
  /// A tensor in memory.
  int tensor(int type, const Dims& shape, const Dims& strides);
  /// A number that is known now.
  int scalar(float value, size_t rank);
  /// A tensor between operations, contiguous unless strides are given.
  int between(int type, const Dims& shape, const Dims& strides = {});

  void convolve(DnnConvolution which, const DnnWindow& window, int weight, int x, int y);
  /// The last two axes are multiplied: c = a b, summed in float32.
  void multiply(int a, int b, int c);
  /// out = x, or x and second, by a mode CUDNN_POINTWISE_…
  void apply(int mode, int x, int second, int out);
  /// The place of each element along an axis, as int32.
  void index(int x, int axis, int out);
  /// a >= b, as bool.
  void is_not_less(int a, int b, int out);
  /// x where the predicate holds, else other.
  void select(int x, int other, int predicate, int out);
  /// The axes of size 1 in `out` are folded.
  void fold(int operation, int x, int out);
  /// The same elements with other strides.
  void view(int x, int out);

  /// The plan that the library's heuristics name first among those that give the same bits in every
  /// run and do not reduce the precision; float32 uses no tensor cores. Equal graphs share one.
  /// Null if there is none whose workspace is small enough.
  std::shared_ptr<const DnnPlan> plan(int device) const;

 private:
  struct Tensor {
    int type = 0;
    Dims shape, strides;
    enum class Kind : uint8_t { kMemory, kScalar, kBetween } kind = Kind::kMemory;
    float value = 0;
  };
  struct Node {
    enum class Kind : uint8_t { kConvolve, kMultiply, kApply, kFold, kView } kind;
    int mode = 0;     ///< of a convolution, of what is applied or folded
    int axis = -1;    ///< of an index
    int compute = 0;  ///< type that is computed in
    std::vector<int> tensors;
    DnnWindow window = {};
  };

  std::string key() const;
  std::shared_ptr<const DnnPlan> make_plan(int device) const;

  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  friend class DnnBuilder;
};

}  // namespace paddle::cuda
