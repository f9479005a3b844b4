#include "base/module.h"

#include <dlfcn.h>

#include <cctype>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"

namespace paddle {
namespace {

std::string last_problem() {
  const char* const reason = dlerror();
  return reason ? reason : "unknown error";
}

}  // namespace

std::string own_binary_path() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&own_binary_path), &found) != 0 && found.dli_fname) {
    const std::string file = found.dli_fname;
    if (file.find(".so", file.rfind('/') + 1) != std::string::npos) return file;
  }
  return program_path();
}

std::string Module::default_path(const std::string& name) {
  std::string variable = "PADDLE_" + name + "_MODULE";
  for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (const char* const path = std::getenv(variable.c_str())) return path;
  std::string folder = own_binary_path();
  if (folder.empty()) return {};
  folder.resize(folder.rfind('/') + 1);
  const std::string file = "libpaddle_" + name + ".so";
  for (const char* place : {"", "../" PADDLE_LIBDIR "/"})
    if (file_exists(folder + place + file)) return folder + place + file;
  return folder + "../lib/" + file;
}

bool Module::open() {
  if (handle_ || !problem_.empty()) return handle_ != nullptr;
  void* const handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    problem_ = last_problem();
    return false;
  }
  const auto version = reinterpret_cast<int (*)()>(dlsym(handle, "paddle_module_version"));
  if (!version || version() != version_) {
    problem_ = version ? str(path_, ": is of version ", version(), ", expected ", version_)
                       : path_ + ": is not a module of paddle";
    dlclose(handle);
    return false;
  }
  handle_ = handle;
  return true;
}

void* Module::function(const char* name) {
  if (!open()) return nullptr;
  void* const address = dlsym(handle_, name);
  if (!address) problem_ = last_problem();
  return address;
}

}  // namespace paddle
