#pragma once
// Optional parts of the engine that are shared objects, opened on first use: a program starts
// without them and works without what they would add.

#include <string>

#include "base/error.h"

namespace paddle {

/// The file that this code is in: the program, or the shared library that a program has loaded.
std::string own_binary_path();

class Module {
 public:
  /// `version` is what the file's function `int paddle_module_version()` must return.
  Module(std::string path, int version) : path_(std::move(path)), version_(version) {}

  /// Where the module `name` is: $PADDLE_<NAME>_MODULE, or libpaddle_<name>.so next to the library
  /// or the program that this code is in, or in the library folder next to its folder.
  static std::string default_path(const std::string& name);

  /// The address of a C function of the module, which is opened at the first call and stays open.
  /// Null if the file cannot be opened, is of another version or lacks the function; `problem` says
  /// which. Callers warn once and do without.
  void* function(const char* name);
  /// As `function`, for callers that cannot do without: kDevice, "`lack`: `problem`", if it is
  /// null.
  template <class F>
  F* require(const char* name, const std::string& lack) {
    void* const address = function(name);
    if (!address) fail(ErrorCode::kDevice, lack, ": ", problem_);
    return reinterpret_cast<F*>(address);
  }
  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }

 private:
  bool open();

  std::string path_;
  int version_;
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace paddle
