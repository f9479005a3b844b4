#pragma once
// The functions of the module `crypto`, opened at the first call.

#include <mutex>
#include <string>

#include "base/crypto_module/interface.h"
#include "base/module.h"

namespace paddle {

/// The function of the module that has this name and type; kDevice if the module is missing, which
/// `users` need.
template <class F>
F* crypto_function(const char* name, const char* users = "encrypted and signed models") {
  static Module module(Module::default_path("crypto"), kCryptoModuleVersion);
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return module.require<F>(name, std::string(users) + " need the module crypto");
}

}  // namespace paddle
