// Kinds of datasets that are written in Python: paddle_toolchain/data.py.

#include <algorithm>
#include <cstring>

#include "config/kind_keys.h"
#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "plugin/reader_adapter.h"
#include "python/core.h"

namespace paddle::python {
namespace {

/// The Python exception that is set, as an error of the data at this place.
[[noreturn]] void fail_with_exception(const std::string& place) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref owned_type(type), owned_value(value), owned_trace(trace);
  const Ref name(PyObject_GetAttrString(type, "__name__"));
  const Ref text(PyObject_Str(value ? value : type));
  const auto readable = [](const Ref& part) {
    if (part && PyUnicode_Check(part.get())) return text_of(part.get());
    PyErr_Clear();
    return std::string("?");
  };
  fail(ErrorCode::kData, place, ": ", readable(name), ": ", readable(text));
}

/// Calls `body` with Python's lock, on any thread; exceptions become errors.
template <class Body>
auto with_python(const std::string& place, Body&& body) {
  const WithLock lock;
  try {
    return body();
  } catch (const PythonError&) {
    fail_with_exception(place);
  }
}

class PythonDataset final : public data::Dataset {
 public:
  /// `instance` is a `_Reader` of data.py.
  PythonDataset(std::string name, std::string options, PyObject* instance)
      : name_(std::move(name)), options_(std::move(options)), instance_(kept(instance)) {
    const Ref lines = checked(PyObject_GetAttrString(instance_.get(), "fields"));
    for (const std::string& line : texts_of(lines.get()))
      fields_.push_back(plugin::parse_field(line));
    if (fields_.empty()) fail(ErrorCode::kData, name_, ": no fields");
    size_ = PyObject_Size(instance_.get());
    if (size_ < 0) throw PythonError();
    const Ref mark = checked(PyObject_GetAttrString(instance_.get(), "fingerprint"));
    fingerprint_ = text_of(mark.get());
  }

  int64_t size() const override { return size_; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string location(int64_t index, int64_t field, int64_t) const override {
    std::string out = str(name_, " sample ", index);
    if (field >= 0) out += ", field '" + fields_[static_cast<size_t>(field)].name + "'";
    return out;
  }
  std::string source() const override { return str(name_, options_, fingerprint_); }
  std::string fingerprint() const override { return fingerprint_; }

  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    out.resize(fields_.size());
    with_python(location(index, -1, -1), [&] {
      const Ref values =
          checked(PyObject_CallMethod(instance_.get(), "read", "LKK", static_cast<long long>(index),
                                      static_cast<unsigned long long>(context.seed),
                                      static_cast<unsigned long long>(context.epoch)));
      for (size_t i = 0; i < fields_.size(); ++i) {
        const Ref value = checked(PySequence_GetItem(values.get(), static_cast<Py_ssize_t>(i)));
        store(value_of(value.get(), fields_[i].dtype).array().contiguous(), i, index, out[i]);
      }
    });
  }

 private:
  void store(const Array& array, size_t field, int64_t index, data::Value& out) const {
    const Dims& declared = fields_[field].shape;
    const bool fits = array.shape.size() == declared.size() &&
                      std::equal(declared.begin(), declared.end(), array.shape.begin(),
                                 [](int64_t want, int64_t is) { return want == -1 || want == is; });
    if (!fits)
      fail(ErrorCode::kData, location(index, static_cast<int64_t>(field), -1), ": the shape is ",
           array.shape, ", the reader declares ", declared);
    out.reset(array.dtype, array.shape);
    if (out.bytes() > 0) std::memcpy(out.raw(), array.raw(), out.bytes());
  }

  std::string name_, options_;
  std::shared_ptr<PyObject> instance_;
  std::vector<data::Field> fields_;
  int64_t size_ = 0;
  std::string fingerprint_;
};

std::vector<KindKey> keys_of(PyObject* sequence) {
  constexpr std::pair<const char*, KindKey::Type> kTypes[] = {{"str", KindKey::Type::kText},
                                                              {"path", KindKey::Type::kPath},
                                                              {"int", KindKey::Type::kInteger},
                                                              {"float", KindKey::Type::kReal},
                                                              {"bool", KindKey::Type::kBoolean}};
  std::vector<KindKey> out;
  const Ref items = checked(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    const std::vector<std::string> parts = texts_of(PyTuple_GetItem(items.get(), i));
    ensure(parts.size() == 4, "a key of a reader has four parts");
    KindKey& key = out.emplace_back();
    key.name = parts[0];
    key.type =
        std::ranges::find(kTypes, parts[1], &std::pair<const char*, KindKey::Type>::first)->second;
    key.required = parts[2] == "required";
    if (parts[2] == "default") key.fallback = parts[3];
    key.doc = "given to the reader";
  }
  return out;
}

PyObject* register_reader(PyObject* /*module*/, PyObject* arguments) {
  return guarded<PyObject*>(nullptr, [&] {
    const char* name = nullptr;
    PyObject *keys = nullptr, *open = nullptr;
    if (!PyArg_ParseTuple(arguments, "sOO:register_reader", &name, &keys, &open))
      throw PythonError();
    const std::vector<KindKey> declared = keys_of(keys);
    const std::shared_ptr<PyObject> opener = kept(open);
    data::DatasetKind kind;
    kind.name = name;
    kind.keys = [declared] { return config::schema_of(declared); };
    kind.read = [declared, opener, kind_name = kind.name](const config::Section& section) {
      const KindOptions options = config::options_of(declared, section, data::resolved_path);
      data::OwnSource source;
      source.kind = kind_name;
      source.open = [=]() -> data::DatasetPtr {
        return with_python(kind_name, [&]() -> data::DatasetPtr {
          const Ref given = checked(PyDict_New());
          std::string all;
          for (const auto& [key, value] : options) {
            checked(PyDict_SetItemString(given.get(), key.c_str(), python_text(value).get()));
            all += str(" ", key, "=", value);
          }
          const Ref instance =
              checked(PyObject_CallFunctionObjArgs(opener.get(), given.get(), nullptr));
          return std::make_shared<PythonDataset>(kind_name, all, instance.get());
        });
      };
      return data::DatasetSource(source);
    };
    kind.path_keys = {};
    for (const KindKey& key : declared)
      if (key.type == KindKey::Type::kPath) kind.path_keys.push_back(key.name);
    data::dataset_kinds().add({kind}, {"data.register"});
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"register_reader", register_reader, METH_VARARGS, "Adds a kind of dataset."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_readers(PyObject* module) { add_functions(module, functions); }

}  // namespace paddle::python
