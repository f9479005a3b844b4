#include "tensor/tensor.h"

#include "tensor/complex.h"
#include "tensor/shared_storage.h"

namespace paddle {

/// Cells are made by every call, so they are small: types are shared, and only views have the rest.
struct Tensor::Cell {
  /// A view knows its base cell, how to read itself from it and how to write itself back.
  struct View {
    Tensor base;
    int64_t base_version = 0;
    ReadView read;
    WriteView write;
  };

  Cell(std::shared_ptr<const TensorType> its_type, std::shared_ptr<const Content> its_content)
      : type(std::move(its_type)), content(std::move(its_content)) {}

  std::shared_ptr<const TensorType> type;
  std::shared_ptr<const Content> content;
  std::shared_ptr<Content> record;
  int64_t version = 0;
  std::unique_ptr<View> view;
};

Tensor::Tensor(TensorType type, std::shared_ptr<const Content> content)
    : Tensor(std::make_shared<const TensorType>(std::move(type)), std::move(content)) {}

Tensor::Tensor(std::shared_ptr<const TensorType> type, std::shared_ptr<const Content> content)
    : cell_(std::make_shared<Cell>(std::move(type), std::move(content))) {}

namespace {

TensorType type_of(const Array& array) { return {array.dtype, to_shape(array.shape)}; }

template <class T>
Tensor weak_scalar(T value) {
  auto content = std::make_shared<Array>(Array::scalar<T>(value));
  TensorType type = type_of(*content);
  type.weak = true;
  return {std::move(type), std::move(content)};
}

}  // namespace

Tensor::Tensor(Array array) {
  auto type = std::make_shared<const TensorType>(type_of(array));
  cell_ = std::make_shared<Cell>(std::move(type), std::make_shared<Array>(std::move(array)));
}

Tensor Tensor::number(double value) { return weak_scalar(value); }
Tensor Tensor::number(int64_t value) { return weak_scalar(value); }
Tensor Tensor::number(std::complex<double> value) { return weak_scalar(value); }
Tensor Tensor::boolean(bool value) { return weak_scalar(value); }

const TensorType& Tensor::type() const {
  ensure(cell_ != nullptr, "type of an undefined tensor");
  return *cell_->type;
}

const Dim& Tensor::dim(int64_t axis) const {
  const Shape& s = shape();
  const int64_t rank = static_cast<int64_t>(s.size());
  if (axis < -rank || axis >= rank)
    fail(ErrorCode::kUsage, "axis ", axis, " is out of range for ", type());
  return s[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
}

void Tensor::refresh() const {
  ensure(cell_ != nullptr, "value of an undefined tensor");
  Cell& cell = *cell_;
  if (!cell.view) return;
  Cell::View& view = *cell.view;
  view.base.refresh();
  if (view.base.cell_->version == view.base_version) return;
  const Tensor now = view.read(view.base);
  cell.content = now.content();
  cell.record = now.record();
  view.base_version = view.base.cell_->version;
  ++cell.version;
}

const std::shared_ptr<const Content>& Tensor::content() const {
  refresh();
  return cell_->content;
}

const Array& Tensor::array() const {
  const Array* const array = concrete();
  if (!array)
    fail(ErrorCode::kUsage, "the value of ", type(),
         " is not known while the program is traced; only its shape is");
  return *array;
}

const std::shared_ptr<Content>& Tensor::record() const {
  refresh();
  return cell_->record;
}

void Tensor::set_record(std::shared_ptr<Content> record) { cell_->record = std::move(record); }

int64_t Tensor::version() const {
  refresh();
  return cell_->version;
}

Tensor Tensor::fresh_cell() const {
  ensure(cell_ != nullptr, "value of an undefined tensor");
  Tensor out(cell_->type, content());
  out.cell_->record = cell_->record;
  return out;
}

void Tensor::set_view(const Tensor& base, ReadView read, WriteView write) {
  cell_->view = std::make_unique<Cell::View>(
      Cell::View{base, base.version(), std::move(read), std::move(write)});
}

bool Tensor::is_view() const { return cell_ && cell_->view; }
const void* Tensor::root() const {
  const Cell* cell = cell_.get();
  while (cell && cell->view) cell = cell->view->base.cell_.get();
  return cell;
}

void Tensor::assign(const Tensor& value) const {
  refresh();
  Cell& cell = *cell_;
  if (!same_type(*cell.type, value.type()))
    fail(ErrorCode::kUsage, "in-place write: ", value.type(), " does not fit ", *cell.type);
  if (cell.view) {
    Cell::View& view = *cell.view;
    view.base.assign(view.write(view.base, value));
    // A view of memory that others write is read again.
    view.base_version =
        is_shared_writable(view.base.content().get()) ? -1 : view.base.cell_->version;
  }
  const Array* const next = is_shared_writable(cell.content.get()) ? value.concrete() : nullptr;
  if (next)
    copy_elements(*next, *cell.content->concrete());
  else
    cell.content = value.content();
  cell.record = value.record();
  ++cell.version;
}

}  // namespace paddle
