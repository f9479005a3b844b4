#pragma once
// The text of a fusion group's program, and the arguments of its kernels.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/fusion/program.h"
#include "ops/core/fused.h"

namespace paddle::cuda {

/// How an operand is read.
struct GroupRead {
  int operand = 0;
  Dims strides;  ///< in elements, by merged axis
  bool vector =
      false;  ///< wide elements lie next to each other, and 16-byte addresses are possible
};

/// The work of a thread.
enum class GroupForm : uint8_t {
  kElements,  ///< no reductions
  kRows,      ///< the innermost axis is reduced: threads side by side fold a result
  kColumns,   ///< the innermost axis is kept: each thread folds results of its own
};

struct Group {
  GroupForm form = GroupForm::kElements;
  Dims shape;                      ///< merged axes, at least one
  std::vector<bool> reduced;       ///< by axis
  std::vector<GroupRead> reads;    ///< by kRead node, in order
  std::vector<DType> read_types;   ///< in memory
  std::vector<int> stores;         ///< results
  int width = 1;                   ///< elements per thread in the wide kernel
  int64_t size = 0;                ///< elements
  int64_t results = 1, count = 1;  ///< of reductions: results, and elements of each
  int64_t chunks = 1;              ///< parts of `count` that are folded apart
  int row_threads = 256;           ///< threads that fold a result together
  int product = -1;                ///< the operand that a product computes
  std::string text;                ///< the program
};

/// A matrix product whose result is an operand of the group, in registers (device/matmul.cuh).
struct GroupProduct {
  int operand = 0;
  std::string types;    ///< of sums, x, y and bias
  std::string compute;  ///< of the sums
  int64_t columns = 1;
  int64_t chunks = 1;  ///< tiles that have the same columns
};

/// None if the group has an operation or type that the generator does not know, and with a product
/// for reductions other than of whole columns.
std::optional<Group> describe_group(const FusedRequest& request, const cpu::FusionProgram& program,
                                    const GroupProduct* product = nullptr);

/// Writes the text of a group whose shape is described. False as `describe_group` says.
bool write_group(const FusedRequest& request, const cpu::FusionProgram& program, Group& group,
                 const GroupProduct* product);

/// n / divisor by a multiplication, as `Divider` in device/prelude.cuh; two words.
void append_divider(std::vector<uint64_t>& words, int64_t divisor, bool large);
/// The name of a type in device code; null for types without kernels.
const char* device_type(DType type);
/// The same for groups, which compute with complex numbers, too (device/complex.cuh).
const char* group_type(DType type);
/// The type that a thread folds elements of a type in.
const char* accumulator_of(DType type);

/// More elements need 64-bit indices.
inline constexpr int64_t kSmallIndex = int64_t{1} << 31;

}  // namespace paddle::cuda
