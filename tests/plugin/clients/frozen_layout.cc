// The headers of version 1.0: the places of the fields of their structs, and the table of a
// device. Not a plug-in; the test opens it by itself.

#include <paddle/plugin/device.h>
#include <paddle/plugin/plugin.h>

#include "host_device-inl.h"

struct Field {
  const char* name;
  size_t offset;
};

extern "C" __attribute__((visibility("default"))) const Field* frozen_fields(size_t* count) {
  static const Field fields[] = {
#define FIELD(type, field) {#type "." #field, offsetof(type, field)},
#include "../abi/layout-inl.h"
  };
  *count = sizeof fields / sizeof *fields;
  return fields;
}

extern "C" __attribute__((visibility("default"))) const size_t* frozen_sizes(size_t* count) {
  static const size_t sizes[] = {sizeof(paddle_view),     sizeof(paddle_request),
                                 sizeof(paddle_host),     sizeof(paddle_run),
                                 sizeof(paddle_instance), sizeof(paddle_kernel),
                                 sizeof(paddle_plugin),   sizeof(paddle_device_api)};
  *count = sizeof sizes / sizeof *sizes;
  return sizes;
}

extern "C" __attribute__((visibility("default"))) const void* frozen_device() {
  static const paddle_device_api device = host_device("frozen_device");
  return &device;
}
