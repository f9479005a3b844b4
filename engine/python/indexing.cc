// x[1, ..., a:b, None, mask, positions] as in NumPy: numbers, slices, `...` and None make a view,
// tensors gather from it.

#include <algorithm>

#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "python/core.h"

namespace paddle::python {
namespace {

int64_t bound_of(PyObject* object) {
  const Ref number = checked(PyNumber_Index(object));
  const Py_ssize_t value = PyNumber_AsSsize_t(number.get(), nullptr);  // clipped
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

bool is_slice(PyObject* object) { return Py_TYPE(object) == &PySlice_Type; }

/// A tensor, list or array that selects places or elements; undefined for other objects.
Tensor positions_of(PyObject* object) {
  if (is_tensor(object)) return operand_value(object);
  if (PyLong_Check(object) || is_slice(object)) return {};
  if (PyList_Check(object)) return value_of(object, std::nullopt);
  // Numbers of NumPy have a buffer without axes.
  auto array = array_of_buffer(object, Memory::kCopied);
  return array && !array->shape.empty() ? Tensor(std::move(*array)) : Tensor();
}

class Index {
 public:
  Index(const Tensor& base, PyObject* index) : view_(base) {
    std::vector<Ref> items;
    if (PyTuple_Check(index))
      for (Py_ssize_t i = 0; i < PyTuple_Size(index); ++i)
        items.push_back(Ref::to(PyTuple_GetItem(index, i)));
    else
      items.push_back(Ref::to(index));
    int64_t taken = 0, dots = 0;
    std::vector<Tensor> tensors(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      PyObject* const item = items[i].get();
      if (item == Py_None) continue;
      if (item == Py_Ellipsis) {
        ++dots;
        continue;
      }
      tensors[i] = positions_of(item);
      taken += tensors[i].defined() && is_bool(tensors[i].dtype()) ? tensors[i].ndim() : 1;
    }
    if (dots > 1) raise(PyExc_IndexError, "an index has more than one '...'");
    if (taken > base.ndim())
      raise(PyExc_IndexError, str("an index of ", taken, " axes into a tensor ", base.type()));
    int64_t axis = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      PyObject* const item = items[i].get();
      if (item == Py_None) {
        view_ = ops::unsqueeze(view_, {axis++});
      } else if (item == Py_Ellipsis) {
        axis += base.ndim() - taken;
      } else if (tensors[i].defined()) {
        tensors_.push_back({tensors[i], axis});
        axis += is_bool(tensors[i].dtype()) ? tensors[i].ndim() : 1;
      } else if (is_slice(item)) {
        slice(item, axis++);
      } else {
        select(item, axis);
      }
    }
  }

  Tensor read() const {
    if (tensors_.empty()) return view_;
    const std::vector<Entry> entries = integers();
    std::vector<int64_t> perm = front_of(entries);
    const Tensor moved = ops::transpose(view_, perm);
    Tensors columns;
    for (size_t i = 0; i < entries.size(); ++i)
      columns.push_back(from_start(entries[i].tensor, moved, static_cast<int64_t>(i)));
    if (columns.size() > 1) columns = ops::broadcast_tensors(columns);
    const int64_t fresh = columns[0].ndim();
    Tensor out = ops::gather_nd(moved, ops::stack(columns, -1));
    // Index tensors on neighboring axes leave their axes there, others bring them to the front.
    const int64_t first = entries[0].axis;
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].axis != entries[i - 1].axis + 1) return out;
    if (first == 0 || fresh == 0) return out;
    std::vector<int64_t> back;
    for (int64_t i = 0; i < first; ++i) back.push_back(fresh + i);
    for (int64_t i = 0; i < fresh; ++i) back.push_back(i);
    for (int64_t i = fresh + first; i < out.ndim(); ++i) back.push_back(i);
    return ops::transpose(out, back);
  }

  void write(const Tensor& given) const {
    Tensor value = given;
    if (value.dtype() != view_.dtype() || value.type().weak)
      value = ops::cast(value, view_.dtype());
    if (tensors_.empty()) {
      view_.assign(same_shape(value.shape(), view_.shape()) ? value
                                                            : ops::expand(value, view_.shape()));
      return;
    }
    // Written at the places that reading finds in a tensor of places.
    const Tensor flat_base = ops::reshape(view_, {Dim(-1)});
    const Dims shape = concrete(view_.shape());
    const int64_t count = element_count(std::span<const int64_t>(shape));
    std::vector<int64_t> numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
    Index all(*this);
    all.view_ = Tensor(Array::from(numbers, shape));
    const Tensor places = all.read();
    const Tensor values = ops::expand(value, places.shape());
    const Tensor written =
        ops::scatter(flat_base, ops::reshape(places, {Dim(-1)}), ops::reshape(values, {Dim(-1)}));
    view_.assign(ops::reshape(written, view_.shape()));
  }

 private:
  struct Entry {
    Tensor tensor;
    int64_t axis;  ///< of `view_`, its first one for a mask
  };

  void select(PyObject* item, int64_t axis) {
    if (!PyIndex_Check(item) || PyBool_Check(item))
      raise(PyExc_TypeError,
            "a tensor is indexed by integers, slices, '...', None, tensors and lists");
    const int64_t size = view_.dim(axis).value();
    const int64_t at = bound_of(item);
    if (at < -size || at >= size)
      raise(PyExc_IndexError, str("index ", at, " is outside the axis of size ", size));
    const int64_t start = at < 0 ? at + size : at;
    view_ = ops::strided_slice(view_, {axis}, {Dim(start)}, {Dim(start + 1)}, {1});
    view_ = ops::squeeze(view_, std::vector<int64_t>{axis});
  }

  void slice(PyObject* item, int64_t axis) {
    const auto part = [&](const char* name) -> std::optional<int64_t> {
      const Ref value = checked(PyObject_GetAttrString(item, name));
      if (value.get() == Py_None) return std::nullopt;
      return bound_of(value.get());
    };
    const int64_t size = view_.dim(axis).value();
    const int64_t step = part("step").value_or(1);
    if (step == 0) raise(PyExc_ValueError, "the step of a slice is 0");
    const auto start = part("start"), stop = part("stop");
    if (!start && !stop && step == 1) return;
    view_ = ops::strided_slice(view_, {axis}, {Dim(start.value_or(step > 0 ? 0 : size - 1))},
                               {Dim(stop.value_or(step > 0 ? size : -size - 1))}, {step});
  }

  /// Index tensors of integers, one axis each: a mask stands for the columns of its coordinates.
  std::vector<Entry> integers() const {
    std::vector<Entry> out;
    for (const Entry& entry : tensors_) {
      if (is_integer(entry.tensor.dtype())) {
        out.push_back(entry);
        continue;
      }
      if (!is_bool(entry.tensor.dtype()))
        raise(PyExc_IndexError,
              str("an index must hold integers or booleans, found ", entry.tensor.type()));
      for (int64_t i = 0; i < entry.tensor.ndim(); ++i)
        if (!entry.tensor.dim(i).same(view_.dim(entry.axis + i)))
          raise(PyExc_IndexError, str("a mask ", entry.tensor.type(),
                                      " on axes of another size: the tensor is ", view_.type()));
      const Tensor places = ops::nonzero_rows(entry.tensor);
      for (int64_t i = 0; i < entry.tensor.ndim(); ++i) {
        const Tensor column = ops::strided_slice(places, {1}, {Dim(i)}, {Dim(i + 1)}, {1});
        out.push_back({ops::reshape(column, {Dim(-1)}), entry.axis + i});
      }
    }
    return out;
  }

  std::vector<int64_t> front_of(const std::vector<Entry>& entries) const {
    std::vector<int64_t> perm;
    for (const Entry& entry : entries) perm.push_back(entry.axis);
    const auto indexed = static_cast<std::ptrdiff_t>(perm.size());
    for (int64_t axis = 0; axis < view_.ndim(); ++axis)
      if (std::find(perm.begin(), perm.begin() + indexed, axis) == perm.begin() + indexed)
        perm.push_back(axis);
    return perm;
  }

  /// Positions counted from the start of an axis of `base`; IndexError outside of it, as far as
  /// values are known.
  static Tensor from_start(const Tensor& positions, const Tensor& base, int64_t axis) {
    if (!positions.is_concrete() || !base.dim(axis).is_constant()) {
      const Tensor at = ops::cast(positions, DType::kI64);
      const Tensor size = ops::cast(
          ops::strided_slice(ops::shape(base), {0}, {Dim(axis)}, {Dim(axis + 1)}, {1}), at.dtype());
      const Tensor wrapped = ops::add(at, ops::reshape(size, {}));
      return ops::where(ops::less_than(at, Tensor(Array::scalar(int64_t{0}))), wrapped, at);
    }
    const int64_t size = base.dim(axis).value();
    Array out = Array::empty(DType::kI64, positions.array().shape);
    const Array in = positions.array().on_host();
    for (int64_t i = 0; i < in.size(); ++i) {
      const int64_t at = in.integer(i);
      if (at < -size || at >= size)
        raise(PyExc_IndexError, str("index ", at, " is outside the axis of size ", size));
      out.data<int64_t>()[i] = at < 0 ? at + size : at;
    }
    return Tensor(std::move(out));
  }

  Tensor view_;
  std::vector<Entry> tensors_;
};

}  // namespace

Tensor index_read(const Tensor& base, PyObject* index) { return Index(base, index).read(); }

void index_write(const Tensor& base, PyObject* index, PyObject* value) {
  Index(base, index).write(is_tensor(value) ? operand_value(value) : value_of(value, base.dtype()));
}

}  // namespace paddle::python
