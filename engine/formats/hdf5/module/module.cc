// The module that reads HDF5 files, by the HDF5 library. Files that refer to other files or to code
// are rejected.

#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/hdf5/module/interface.h"

namespace {

/// An identifier that is closed at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

template <class Body>
int guarded(char* message, size_t message_size, Body&& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& e) {
    if (message_size > 0) std::snprintf(message, message_size, "%s", e.what());
    return 1;
  }
}

/// Members FALSE and TRUE, as h5py writes bools.
bool is_bool(hid_t type) {
  return H5Tget_class(type) == H5T_ENUM && H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1;
}

char class_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return 'f';
    case H5T_INTEGER:
      return H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
    default:
      return is_bool(type) ? 'b' : '?';
  }
}

struct Visit {
  hid_t file;
  paddle_hdf5_visit visit;
  void* context;
  std::string problem;
};

void visit_dataset(const Visit& to, const char* name) {
  const Handle dataset(H5Dopen2(to.file, name, H5P_DEFAULT), H5Dclose);
  require(dataset.valid(), std::string("the dataset '") + name + "' cannot be opened");
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  require(H5Pget_external_count(properties) <= 0 && H5Pget_layout(properties) != H5D_VIRTUAL,
          std::string("the dataset '") + name + "' is in other files");
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  require(type.valid() && rank >= 0, std::string("the dataset '") + name + "' is damaged");
  std::vector<hsize_t> dims(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  const std::vector<uint64_t> shape(dims.begin(), dims.end());
  const bool has_elements = H5Sget_simple_extent_type(space) != H5S_NULL;
  to.visit(to.context, name, has_elements ? class_of(type) : '?', H5Tget_size(type), rank,
           shape.data());
}

herr_t visit_object(hid_t, const char* name, const H5O_info_t* info, void* context) {
  Visit& to = *static_cast<Visit*>(context);
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    visit_dataset(to, name);
    return 0;
  } catch (const std::exception& e) {
    to.problem = e.what();
    return -1;
  }
}

herr_t visit_link(hid_t, const char* name, const H5L_info_t* info, void* context) {
  const Visit& to = *static_cast<const Visit*>(context);
  if (info->type != H5L_TYPE_HARD) to.visit(to.context, name, 'l', 0, 0, nullptr);
  return 0;
}

void prepare_library() {
  H5dont_atexit();  // a damaged file can crash its cleanup when the process ends
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // the library prints its errors otherwise
  H5PLset_loading_state(0);                     // no filters from elsewhere
}

}  // namespace

#pragma GCC visibility push(default)

int paddle_module_version() { return PADDLE_HDF5_VERSION; }

void* paddle_hdf5_open(const char* path, char* message, size_t message_size) {
  hid_t file = -1;
  guarded(message, message_size, [&] {
    prepare_library();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    require(file >= 0, "is not an HDF5 file, or damaged");
  });
  return file >= 0 ? new hid_t(file) : nullptr;
}

void* paddle_hdf5_open_image(void* bytes, size_t size, char* message, size_t message_size) {
  hid_t file = -1;
  guarded(message, message_size, [&] {
    prepare_library();
    constexpr size_t kGrowth = size_t{1} << 16;
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    require(access.valid() && H5Pset_fapl_core(access, kGrowth, 0) >= 0 &&
                H5Pset_file_image(access, bytes, size) >= 0,
            "cannot be opened in memory");
    file = H5Fopen("image", H5F_ACC_RDONLY, access);
    require(file >= 0, "is not an HDF5 file, or damaged");
  });
  return file >= 0 ? new hid_t(file) : nullptr;
}

void paddle_hdf5_close(void* file) {
  const auto* const id = static_cast<hid_t*>(file);
  H5Fclose(*id);
  delete id;
}

int paddle_hdf5_list(void* file, paddle_hdf5_visit visit, void* context, char* message,
                     size_t message_size) {
  return guarded(message, message_size, [&] {
    Visit to{*static_cast<hid_t*>(file), visit, context, {}};
    const herr_t status =
        H5Ovisit2(to.file, H5_INDEX_NAME, H5_ITER_NATIVE, visit_object, &to, H5O_INFO_BASIC);
    require(status >= 0, to.problem.empty() ? "its groups are damaged" : to.problem);
    require(H5Lvisit(to.file, H5_INDEX_NAME, H5_ITER_NATIVE, visit_link, &to) >= 0,
            "its groups are damaged");
  });
}

int paddle_hdf5_read(void* file, const char* name, void* to, size_t bytes, char* message,
                     size_t message_size) {
  return guarded(message, message_size, [&] {
    const std::string what = std::string("the dataset '") + name + "' ";
    const Handle dataset(H5Dopen2(*static_cast<hid_t*>(file), name, H5P_DEFAULT), H5Dclose);
    require(dataset.valid(), what + "cannot be opened");
    const Handle stored(H5Dget_type(dataset), H5Tclose);
    const Handle space(H5Dget_space(dataset), H5Sclose);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t item = H5Tget_size(stored);
    require(count >= 0 && item > 0 && static_cast<size_t>(count) == bytes / item,
            what + "has a different size than it declares");
    // Numbers keep their type but for the byte order.
    const Handle type(H5Tcopy(stored), H5Tclose);
    const H5T_order_t order = H5Tget_order(H5T_NATIVE_INT);
    if (!is_bool(stored)) require(H5Tset_order(type, order) >= 0, what + "is damaged");
    require(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0,
            what + "cannot be read: it is damaged, or has a filter that is not supported");
  });
}

#pragma GCC visibility pop
