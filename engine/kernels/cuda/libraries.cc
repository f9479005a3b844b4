#include "kernels/cuda/libraries.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "base/environment.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::cuda {
namespace {

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* const open = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(open))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    closedir(open);
  }
  std::sort(names.rbegin(), names.rend());  // the newest versions first
  return names;
}

/// The folders of wheels below LIB/python3.*/, where `lib` is that of an installation of Python.
void add_wheels(const std::string& lib, std::vector<std::string>& folders) {
  for (const std::string& version : entries_of(lib)) {
    if (!version.starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::string nvidia = str(lib, "/", version, "/", packages, "/nvidia");
      for (const std::string& package : entries_of(nvidia))
        folders.push_back(str(nvidia, "/", package, "/lib"));
    }
  }
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

/// All functions of the table; false, with `problem`, if the library lacks one.
template <class Table>
bool load_functions(const Library& library, Table& table, std::string& problem) {
  visit_functions(table, [&](const char* name, auto& function) {
    void* const address = dlsym(library.handle, name);
    if (!address && problem.empty())
      problem = str(library.path, " lacks the function ", name, "; a newer one is needed");
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  });
  if (!problem.empty()) table = {};
  return problem.empty();
}

/// "libnvrtc.so" as ".so.13" and ".so.12", those that a driver of this version can load; 0: any.
std::vector<std::string> versioned_names(const std::string& name, int driver_version) {
  std::vector<std::string> names;
  if (driver_version == 0 || driver_version >= 13000) names.push_back(name + ".13");
  names.push_back(name + ".12");
  return names;
}

DriverLibrary open_driver() {
  DriverLibrary driver;
  const Library library = open_library({"libcuda.so.1"}, driver.problem);
  if (!library.handle) {
    driver.problem = "there is no NVIDIA driver: " + driver.problem;
    return driver;
  }
  driver.path = library.path;
  if (!load_functions(library, driver.functions, driver.problem)) return driver;
  const auto failed = [&](const char* function, CUresult error) {
    const char* text = nullptr;
    driver.functions.cuGetErrorString(error, &text);
    driver.problem =
        str(driver.path, ": ", function, ": ", text ? std::string(text) : str("error ", error));
    driver.functions = {};
    return driver;
  };
  if (const CUresult error = driver.functions.cuInit(0)) {
    if (error != CUDA_ERROR_NO_DEVICE) return failed("cuInit", error);
    driver.problem = str("no NVIDIA GPU was found by ", driver.path);
    driver.functions = {};
    return driver;
  }
  if (const CUresult error = driver.functions.cuDriverGetVersion(&driver.version))
    return failed("cuDriverGetVersion", error);
  constexpr int kOldest = 12000;
  if (driver.version < kOldest) {
    driver.problem = str(driver.path, " is the driver of CUDA ", driver.version / 1000, ".",
                         driver.version % 1000 / 10, "; CUDA 12.0 (driver 525) or newer is needed");
    driver.functions = {};
  }
  return driver;
}

/// Opens cuBLASLt or cuDNN, whose `get_version` gives a number such as 130401.
template <class Opened, class Functions, class GetVersion>
Opened open_versioned(const std::vector<std::string>& names, GetVersion Functions::*get_version) {
  Opened out;
  const Library library = open_library(names, out.problem);
  if (!library.handle) return out;
  out.path = library.path;
  if (!load_functions(library, out.functions, out.problem)) return out;
  const size_t version = (out.functions.*get_version)();
  out.version = str(version / 10000, ".", version % 10000 / 100, ".", version % 100);
  return out;
}

}  // namespace

std::vector<std::string> library_folders(size_t& first) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(environment("PADDLE_CUDA_LIBRARIES"), ':'))
    if (!folder.empty()) folders.push_back(folder);
  first = folders.size();
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = environment(name); !home.empty())
      folders.push_back(home + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const std::string& folder : split(environment("PATH"), ':')) {
    if (folder.empty() || !file_exists(folder + "/python3")) continue;
    add_wheels(folder + "/../lib", folders);
    if (folder == "/usr/bin") add_wheels("/usr/local/lib", folders);
    break;
  }
  if (const std::string home = environment("HOME"); !home.empty())
    add_wheels(home + "/.local/lib", folders);
  return folders;
}

Library open_library(const std::vector<std::string>& names, std::string& problem) {
  size_t first = 0;
  const std::vector<std::string> folders = library_folders(first);
  problem.clear();
  const auto open = [&](const std::string& path) -> void* {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle && problem.empty())
      if (const char* const reason = dlerror()) problem = reason;
    return handle;
  };
  const auto open_in = [&](const std::string& name, size_t begin, size_t end) -> void* {
    for (size_t i = begin; i < end; ++i)
      if (const std::string path = folders[i] + "/" + name; file_exists(path))
        if (void* const handle = open(path)) return handle;
    return nullptr;
  };
  // A driver of a toolkit is a stub for linkers.
  const bool is_driver = names[0].starts_with("libcuda.");
  for (const std::string& name : names) {
    void* handle = open_in(name, 0, first);
    if (!handle) handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle && !is_driver) handle = open_in(name, first, folders.size());
    if (handle) return {handle, path_of(handle)};
  }
  if (problem.empty()) problem = join(names, " or ") + " was not found";
  return {};
}

const DriverLibrary& driver_library() {
  static const DriverLibrary& driver = *new DriverLibrary(open_driver());
  return driver;
}

NvrtcLibrary open_nvrtc(int driver_version) {
  NvrtcLibrary nvrtc;
  const Library library =
      open_library(versioned_names("libnvrtc.so", driver_version), nvrtc.problem);
  if (!library.handle) {
    nvrtc.problem += str("; install the CUDA toolkit, or `pip install ",
                         driver_version >= 13000 || driver_version == 0 ? "nvidia-cuda-nvrtc"
                                                                        : "nvidia-cuda-nvrtc-cu12",
                         "`");
    return nvrtc;
  }
  nvrtc.path = library.path;
  if (!load_functions(library, nvrtc.functions, nvrtc.problem)) return nvrtc;
  if (nvrtc.functions.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS) {
    nvrtc.problem = str(nvrtc.path, " does not tell its version");
    nvrtc.functions = {};
  }
  return nvrtc;
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary& library =
      *new CudnnLibrary(open_versioned<CudnnLibrary>({"libcudnn.so.9"}, &Cudnn::cudnnGetVersion));
  return library;
}

const CublasLtLibrary& cublaslt_library() {
  static const CublasLtLibrary& library = *new CublasLtLibrary(open_versioned<CublasLtLibrary>(
      versioned_names("libcublasLt.so", driver_library().version), &CublasLt::cublasLtGetVersion));
  return library;
}

const NvrtcLibrary& nvrtc_library() {
  static const NvrtcLibrary& nvrtc = *new NvrtcLibrary(open_nvrtc(driver_library().version));
  return nvrtc;
}

}  // namespace paddle::cuda
