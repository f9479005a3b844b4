#pragma once
// The description of a shared object in its file, read before it is opened. The file may be
// damaged or hostile: all offsets are checked against its size.

#include <string>
#include <vector>

#include "base/error.h"

namespace paddle::plugin {

/// The note that PADDLE_PLUGIN_NOTE writes.
struct Note {
  uint32_t abi_major = 0, abi_minor = 0;
  std::string name, version;
};

struct ObjectFile {
  Note note;
  std::vector<std::string> needed;   ///< libraries, as the linker noted them
  std::vector<std::string> defined;  ///< symbols that it exports
  std::vector<std::string> undefined;
};

/// Reads the file. kDevice, "PATH: cause", if it is not a shared object for this processor or has
/// no note.
ObjectFile read_object_file(const std::string& path);

}  // namespace paddle::plugin
