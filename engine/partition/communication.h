#pragma once
// The bytes that the collectives of a function send, known before it runs.

#include <cstdint>
#include <map>
#include <string>

#include "ir/module.h"

namespace paddle::partition {

struct Traffic {
  int64_t calls = 0;
  uint64_t bytes = 0;  ///< that one rank sends in all of them
};

/// Of a value whose dims are constants.
int64_t bytes_of(const ir::Value& value);

/// By operation: "comm.all_reduce", "comm.reduce_scatter", "comm.all_gather". Dims must be
/// constants.
std::map<std::string, Traffic> communication(const ir::Function& function);

/// "3.1 MiB in 14 comm.all_reduce, 1.0 KiB in 2 comm.all_gather"; "nothing".
std::string text(const std::map<std::string, Traffic>& traffic);

}  // namespace paddle::partition
