#pragma once
// Links the sections of a relocatable object into one block of code.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace paddle::codegen {

struct LinkedCode {
  std::vector<unsigned char> bytes;
  size_t entry = 0;
};

/// `object` is an ELF object for x86-64 without external references; `entry` is the name of its
/// function. Throws std::runtime_error for unsupported relocations.
LinkedCode link_object(std::span<const unsigned char> object, const std::string& entry);

}  // namespace paddle::codegen
