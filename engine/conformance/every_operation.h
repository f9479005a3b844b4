#pragma once
// All operations of the engine on a device of a plug-in: by its kernels, by their bodies, or on the
// host. A device must be right for those that it has no kernels for, too.

#include <optional>
#include <string>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

/// How many of the operations of the engine were exercised.
struct Coverage {
  size_t operations = 0, all = 0;
};
/// "117 of 118".
std::string text(const Coverage& coverage);
std::optional<Coverage> parse_coverage(const std::string& text);

/// The operations are checked in as many parts, by number.
inline constexpr size_t kOperationParts = 8;

/// The results of a part of the operations, compiled for the device, against those of the CPU; a
/// line that begins with kNote has the coverage, others say what is wrong. Operations that the
/// checks of collective operations and of control flow (in the group plans) exercise are left out.
std::string check_every_operation(const std::string& device, size_t part);
/// The same for gradients to second order, by finite differences, of those that have one.
std::string check_every_gradient(const std::string& device, size_t part);

/// Whether it is an operation of the engine that calls with arrays of the suite exercise.
bool is_called(const Op& op);
/// The operations of the engine that these leave out.
std::vector<std::string> operations_left_out();

/// Begins a line that says something of a check that has passed.
inline constexpr char kNote = '\x1d';

}  // namespace paddle::conformance
