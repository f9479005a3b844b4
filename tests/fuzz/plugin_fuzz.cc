// Any bytes as a plug-in, a YAML file ('y' in front) or a shared object. Nothing of it is opened or
// registered.

#include <string>

#include "fuzz/fuzz_target.h"
#include "plugin/elf.h"
#include "plugin/registration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size == 0 || size > 1 << 16) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  fuzz::expect_documented_end([&] {
    try {
      if (data[0] == 'y')
        plugin::read_yaml_plugin(fuzz::input_file(rest, "fuzz.plugin.yaml"));
      else
        plugin::read_object_file(fuzz::input_file(rest, "fuzz.so"));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kConfig && e.code() != ErrorCode::kDevice) throw;
    }
  });
  return 0;
}
