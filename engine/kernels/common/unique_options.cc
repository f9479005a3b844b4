#include "kernels/common/unique_options.h"

namespace paddle::cpu {

UniqueOptions unique_options(const KernelRequest& request) {
  const auto attr = [&](const char* name) -> const AttrValue* {
    const int at = request.op.attr_index(name);
    return at < 0 ? nullptr : &request.attrs[static_cast<size_t>(at)];
  };
  const auto flag = [&](const char* name) { return attr(name) && attr(name)->as_bool(); };
  const Layout& x = request.operands[0];
  UniqueOptions out;
  out.consecutive = request.op.name() == "unique_consecutive";
  out.with_index = flag("return_index");
  out.with_inverse = flag("return_inverse");
  out.with_counts = flag("return_counts");
  out.is_int64 = attr("dtype")->as_dtype() == DType::kI64;
  const bool along = !attr("axis")->is_none();
  out.shape = along ? x.shape : Dims{x.size()};
  const int64_t given = along ? attr("axis")->as_int() : 0;
  out.axis =
      static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(out.shape.size()) : given);
  out.rows = Rows::of(out.shape, given);
  return out;
}

}  // namespace paddle::cpu
