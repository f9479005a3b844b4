#pragma once
// The functions of the module `crypto`, opened at the first call.

#include <mutex>

#include "base/crypto_module/interface.h"
#include "base/module.h"

namespace paddle {

/// The function of the module that has this name and type; kDevice if the module is missing.
template <class F>
F* crypto_function(const char* name) {
  static Module module(Module::default_path("crypto"), kCryptoModuleVersion);
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return module.require<F>(name, "encrypted and signed models need the module crypto");
}

}  // namespace paddle
