#include "conformance/load_checks.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "conformance/environment.h"
#include "paddle/plugin/plugin.h"
#include "plugin/host.h"

namespace paddle::conformance {
namespace {

std::string check_environment(const Subject& subject) {
  const Environment before;
  const plugin::Plugin& loaded = subject.plugin();
  return loaded.state_change.empty() ? before.change(Environment()) : loaded.state_change;
}

std::string check_twice(const Subject& subject) {
  const plugin::Plugin& one = subject.plugin();
  return &one == &plugin::load(subject.path()) ? "" : "it is loaded twice";
}

std::string check_exports(const Subject& subject) {
  for (const std::string& symbol : plugin::read_info(subject.path()).exported)
    if (symbol != "paddle_plugin_main" && !symbol.starts_with("_init") &&
        !symbol.starts_with("_fini") && !symbol.starts_with("_edata") &&
        !symbol.starts_with("_end") && !symbol.starts_with("__bss_start"))
      return "it exports '" + symbol + "'; build it with -fvisibility=hidden";
  return "";
}

/// The size of paddle_plugin in the minor version.
size_t size_in(uint32_t minor) {
  const size_t sizes[] = {
      offsetof(paddle_plugin, start) + sizeof(paddle_plugin::start),
      offsetof(paddle_plugin, devices) + sizeof(paddle_plugin::devices),
      offsetof(paddle_plugin, readers) + sizeof(paddle_plugin::readers),
      offsetof(paddle_plugin, compilers) + sizeof(paddle_plugin::compilers),
      offsetof(paddle_plugin, stop) + sizeof(paddle_plugin::stop),
  };
  return sizes[std::min<size_t>(minor, std::size(sizes) - 1)];
}

/// A program of the minor version that the file was built for gives the entry a struct that ends
/// early.
std::string check_minor(const Subject& subject) {
  const uint32_t minor = plugin::read_info(subject.path()).abi_minor;
  void* const library =
      dlopen(std::filesystem::absolute(subject.path()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return str("cannot be opened: ", dlerror());
  const auto entry =
      reinterpret_cast<paddle_plugin_main_function>(dlsym(library, "paddle_plugin_main"));
  if (!entry) return "it has no paddle_plugin_main";
  constexpr std::byte kMark{0x5A};
  const size_t size = size_in(minor);
  std::vector<std::byte> memory(size + 512, kMark);
  std::fill_n(memory.begin(), size, std::byte{0});
  auto* const given = reinterpret_cast<paddle_plugin*>(memory.data());
  given->struct_size = static_cast<uint32_t>(size);
  const paddle_status status = entry(&plugin::host(), given);
  if (std::any_of(memory.begin() + static_cast<std::ptrdiff_t>(size), memory.end(),
                  [](std::byte b) { return b != kMark; }))
    return str("its entry writes beyond paddle_plugin of version 1.", minor,
               ", which its note states");
  if (status == PADDLE_OK && given->needs_minor > minor)
    return str("it needs version 1.", given->needs_minor, ", its note states 1.", minor);
  return "";
}

}  // namespace

std::vector<std::string> load_checks(const Subject& subject) {
  if (!plugin::read_info(subject.path()).is_native) return {"environment", "twice"};
  return {"environment", "twice", "exports", "minor"};
}

std::string check_loading(const Subject& subject, const std::string& check) {
  if (check == "environment") return check_environment(subject);
  if (check == "twice") return check_twice(subject);
  return check == "exports" ? check_exports(subject) : check_minor(subject);
}

}  // namespace paddle::conformance
