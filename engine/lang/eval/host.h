#pragma once
// Interface of the model language to its host: the storage of parameters and states. The
// trainer's is backed by the module under construction, an eager run's by arrays, a test's by a
// map.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle {
class Random;
}

namespace paddle::lang {

/// How a parameter or state gets its first value.
struct Initializer {
  enum class Kind {
    kConstant,         ///< a
    kNormal,           ///< mean a, standard deviation b
    kTruncatedNormal,  ///< the same, cut at two standard deviations
    kUniform,          ///< from a to b
    kXavierUniform,
    kXavierNormal,
    kKaimingUniform,
    kKaimingNormal,
    kOrthogonal,
    kDirac,     ///< a groups
    kBilinear,  ///< linear interpolation in both axes of a window
    kAssign,    ///< values, row-major
    kArray,     ///< what a file holds, in whatever floating type
  };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;
  std::vector<double> values;
  Array array = {};   ///< of kArray; copied when used
  double factor = 1;  ///< of xavier, kaiming and orthogonal: of all elements

  static Initializer constant(double value) { return {Kind::kConstant, value, 0, {}}; }
  bool is_random() const;
  std::string text() const;  ///< "normal(0, 0.02)"
};

/// How long a state lives.
enum class StateScope { kModel, kSequence };

class ParameterProvider {
 public:
  virtual ~ParameterProvider() = default;

  /// The parameter of that path, made if it is new. kModel if it exists in another shape or type.
  virtual Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                           const Initializer& init) = 0;
  /// The current value of a state's slot, made if it is new.
  virtual Tensor state(const std::string& path, const Dims& shape, DType dtype,
                       const Initializer& init, StateScope scope) = 0;
  /// Gives the slot its value for the next call; `state` of later calls gives it.
  virtual void update(const std::string& path, const Tensor& value) = 0;
  /// The type in which parameters and states of a declared type are kept (a run in float64 widens).
  virtual DType stored_dtype(DType declared) const { return declared; }
  /// The same for a parameter, which may be kept in fewer bits than its kind.
  virtual DType stored_dtype(const std::string& /*path*/, DType declared) const {
    return stored_dtype(declared);
  }
  /// The rows of a table for `keys` (int32 or int64, any values): keys.shape + [width]. The table
  /// of that path is made if it is new; a row that is trained for the first time begins as `init`
  /// says (see `fill_row`). Where `mask`, bool in the shape of the keys, is false, rows are zeros
  /// and none is made; undefined: all keys count. kConfig where tables are not possible, or if the
  /// table has another width.
  virtual Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                            const Initializer& init, const Tensor& mask);
  /// Whether training leaves the parameter or state of that path as it is.
  virtual bool is_frozen(const std::string& /*path*/) const { return false; }
  /// The number that a dim stands for in this trace (`static(dim)`); the trace is then good for
  /// this value only. Throws kUsage where that cannot be.
  virtual int64_t static_value(const Dim& dim) { return dim.value(); }
};

struct CallRecord;

/// An entry's computation where no code of ours gives it: a model in another tool's format.
class ExternalEntry {
 public:
  virtual ~ExternalEntry() = default;
  /// The outputs, in the entry's order. Runs under the active interpreter; `observer`, if given, is
  /// told of the parts that have parameters. `training`: as a step of training runs it.
  virtual Tensors run(const Tensors& inputs, ParameterProvider& store, bool training,
                      const std::function<void(const CallRecord&)>& observer) const = 0;
};

/// The first value of a parameter, a function of (seed, path) and the initializer only.
Array initial_value(const Initializer& init, const std::string& path, const Dims& shape,
                    DType dtype, uint64_t seed);
/// Whether rows of a table can begin so: the number of rows and their order change nothing.
bool makes_rows(const Initializer& init);
/// The first value of a row, from the numbers of `random`. The initializer must make rows.
void fill_row(const Initializer& init, const Random& random, std::span<double> row);
/// Inputs and outputs of one element of a weight, as the initializers count them: [in, out] for
/// matrices, [out, in, …] for convolutions.
std::pair<double, double> fans(const Dims& shape);

}  // namespace paddle::lang
