#include "tensor/tensor.h"

#include "tensor/complex.h"

namespace paddle {

/// A view knows its base cell, how to read itself from it and how to write itself back.
struct Tensor::Cell {
  TensorType type;
  std::shared_ptr<const Content> content;
  std::shared_ptr<Content> record;
  int64_t version = 0;
  Tensor base;
  int64_t base_version = 0;
  ReadView read;
  WriteView write;
};

Tensor::Tensor(TensorType type, std::shared_ptr<const Content> content)
    : cell_(std::make_shared<Cell>()) {
  cell_->type = std::move(type);
  cell_->content = std::move(content);
}

Tensor::Tensor(Array array) : cell_(std::make_shared<Cell>()) {
  cell_->type.dtype = array.dtype;
  cell_->type.shape = to_shape(array.shape);
  cell_->content = std::make_shared<Array>(std::move(array));
}

Tensor Tensor::number(double value) {
  Tensor out(Array::scalar<double>(value));
  out.cell_->type.weak = true;
  return out;
}

Tensor Tensor::number(int64_t value) {
  Tensor out(Array::scalar<int64_t>(value));
  out.cell_->type.weak = true;
  return out;
}

Tensor Tensor::number(std::complex<double> value) {
  Tensor out(Array::scalar(value));
  out.cell_->type.weak = true;
  return out;
}

Tensor Tensor::boolean(bool value) {
  Tensor out(Array::scalar<bool>(value));
  out.cell_->type.weak = true;
  return out;
}

const TensorType& Tensor::type() const {
  ensure(cell_ != nullptr, "type of an undefined tensor");
  return cell_->type;
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
  if (!cell.base) return;
  cell.base.refresh();
  if (cell.base.cell_->version == cell.base_version) return;
  const Tensor now = cell.read(cell.base);
  cell.content = now.content();
  cell.record = now.record();
  cell.base_version = cell.base.cell_->version;
  ++cell.version;
}

const std::shared_ptr<const Content>& Tensor::content() const {
  refresh();
  return cell_->content;
}

bool Tensor::is_concrete() const { return dynamic_cast<const Array*>(content().get()) != nullptr; }

const Array& Tensor::array() const {
  const auto* array = dynamic_cast<const Array*>(content().get());
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
  Tensor out(type(), content());
  out.cell_->record = record();
  return out;
}

void Tensor::set_view(const Tensor& base, ReadView read, WriteView write) {
  cell_->base = base;
  cell_->base_version = base.version();
  cell_->read = std::move(read);
  cell_->write = std::move(write);
}

bool Tensor::is_view() const { return cell_ && cell_->base.defined(); }

void Tensor::assign(const Tensor& value) const {
  refresh();
  Cell& cell = *cell_;
  if (!same_type(cell.type, value.type()))
    fail(ErrorCode::kUsage, "in-place write: ", value.type(), " does not fit ", cell.type);
  if (cell.base) {
    cell.base.assign(cell.write(cell.base, value));
    cell.base_version = cell.base.cell_->version;
  }
  cell.content = value.content();
  cell.record = value.record();
  ++cell.version;
}

}  // namespace paddle
