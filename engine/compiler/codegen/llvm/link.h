#pragma once
// The sections of a relocatable object, laid one after the other and bound to each other.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace paddle::codegen {

struct LinkedCode {
  std::vector<unsigned char> bytes;
  size_t entry = 0;
};

/// `object` is an ELF object for x86-64 whose code refers to nothing outside it; `entry` is the
/// name of its function. Throws std::runtime_error for what it does not know.
LinkedCode link_object(std::span<const unsigned char> object, const std::string& entry);

}  // namespace paddle::codegen
