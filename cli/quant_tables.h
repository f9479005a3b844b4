#pragma once
// `paddle quant tables`: a model whose tables have rows in fewer bits.

#include <string>

#include "common_options.h"

namespace paddle::cli {

class QuantTables {
 public:
  /// Adds `tables` to the command.
  explicit QuantTables(App& app);
  bool parsed() const { return tables_->parsed(); }
  /// Returns the exit status.
  int run() const;

 private:
  App* tables_;
  std::string model_, output_, dtype_ = "int8", data_;
  bool no_check_ = false, overwrite_ = false, json_ = false;
};

}  // namespace paddle::cli
