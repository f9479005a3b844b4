#pragma once
// Options of a plug-in or of one of its kinds as the struct of C (paddle_options in abi.h).

#include <vector>

#include "base/kind_options.h"
#include "paddle/plugin/abi.h"

namespace paddle::plugin {

/// Refers to the options, which must live longer.
class OptionStruct {
 public:
  explicit OptionStruct(const KindOptions& options) {
    for (const auto& [name, value] : options) {
      names_.push_back(name.c_str());
      values_.push_back(value.c_str());
    }
    struct_ = {sizeof struct_, static_cast<uint32_t>(names_.size()), names_.data(), values_.data()};
  }
  OptionStruct(const OptionStruct&) = delete;
  OptionStruct& operator=(const OptionStruct&) = delete;
  const paddle_options* get() const { return &struct_; }

 private:
  std::vector<const char*> names_, values_;
  paddle_options struct_{};
};

}  // namespace paddle::plugin
