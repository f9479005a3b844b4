#pragma once
// Constants by reference in the text form: `%3 = constant float32[512, 512] at 'NAME'` in place of
// the elements, which a store keeps under that name.

#include <string>
#include <string_view>

#include "ir/module.h"

namespace paddle::ir {

class ConstantStore {
 public:
  virtual ~ConstantStore() = default;
  /// Keeps the array, and returns a name under which `get` gives it; "" if it cannot be kept, and
  /// is then part of the text.
  virtual std::string put(const Array& array) = 0;
  /// The array of that name; kModel for other names.
  virtual Array get(const std::string& name) const = 0;
};

/// The forms of module.h with constants of more than `longest` elements in the store.
std::string print(const Module& module, ConstantStore& store, int64_t longest);
std::string print_module(const Function& function, const std::string& module_name,
                         ConstantStore& store, int64_t longest);
Module parse(std::string_view text, const std::string& file, const ConstantStore& store,
             uint32_t allowed_accesses = 0);

}  // namespace paddle::ir
