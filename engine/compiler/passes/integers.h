#pragma once
// The parts of the pass that computes on integers (integers.cc): what moves values, the
// convolutions and products, and what follows them.

#include <list>
#include <optional>
#include <unordered_map>

#include "compiler/passes/passes.h"
#include "ops/quantized.h"

namespace paddle::passes::integers {

/// Elements of a constant that is brought to numbers.
inline constexpr int64_t kMaxUnpacked = int64_t{1} << 26;

/// What only moves values moves integers; constants are brought into the steps of a quantize; a
/// quantize that undoes a dequantize goes.
void move_integers(ir::Function& function, const Evaluate& evaluate);
/// Convolutions and products of dequantized integers become ones on the integers.
void form_products(ir::Function& function, const TakesIntegers& takes_integers);
/// True if two values of bytes are multiplied on integers.
bool takes_values(const TakesIntegers& takes_integers);
/// What is done to convolutions along one axis stands beside them, not behind the view that takes
/// the other axis out.
void bring_images_together(ir::Function& function);
/// These take along what is done to their results.
void absorb_followers(ir::Function& function);

/// The operations that the parts know.
struct Ops {
  const Op &quantize = get_op("quantize"), &dequantize = get_op("dequantize"),
           &conv = get_op("quantized_conv"), &linear = get_op("quantized_linear"),
           &product = get_op("quantized_matmul"), &conv2d = get_op("conv2d"),
           &conv3d = get_op("conv3d"), &plain_linear = get_op("linear"), &matmul = get_op("matmul"),
           &transpose = get_op("transpose"), &max_pool = get_op("max_pool2d"),
           &concat = get_op("concat"), &index_select = get_op("index_select"),
           &embedding = get_op("embedding"), &add = get_op("add"), &multiply = get_op("multiply"),
           &relu = get_op("relu"), &clip = get_op("clip"), &cast = get_op("cast"),
           &reshape = get_op("reshape"), &squeeze = get_op("squeeze"),
           &unsqueeze = get_op("unsqueeze");
};
const Ops& known();

bool is_byte(DType dtype);
bool is_quantized_product(const Op& op);
bool is_one_number(const ir::Value* v);
bool is_known_number(const ir::Value* v);
bool is_positive(const ir::Value* v);
bool same_number(const ir::Value* a, const ir::Value* b);
const AttrValue& attribute(const ir::Operation& o, const char* name);
void set_attribute(ir::Operation& o, const char* name, AttrValue value);
/// The operation `op` that gives the value, or null.
ir::Operation* made_by(const ir::Value* v, const Op& op);
/// The operation that gives `v` from bytes and one scale and zero point, or null.
ir::Operation* from_bytes(const ir::Value* v);
/// The axis of `rank` along which `v` has several numbers; -1 for one number, -2 for more axes.
int varying_axis(const ir::Value* v, int rank);
/// All elements in one axis.
Array flat(const Array& a);
/// A bias [channels] of the product `o`: the integers behind it where they count in steps of the
/// product's scale.
ir::Value* bias_of(ir::Function& function, const ir::Operation& o, ir::Value* bias);

/// Goes through a function's operations in order and changes some, knowing who reads what.
class Walk {
 public:
  explicit Walk(ir::Function& function) : function_(function) {}
  virtual ~Walk() = default;
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  /// Visits each operation of the body that is there, and drops what nobody reads any more.
  void run();

 protected:
  using Place = std::list<std::unique_ptr<ir::Operation>>::iterator;

  virtual void visit(Place place) = 0;
  /// The one operation that reads the value, without regions of its own; null otherwise.
  ir::Operation* only_reader(const ir::Value* v) const;
  /// A new operation that gives an existing value, with the place in the text of `like`.
  void insert(Place before, const ir::Operation& like, const Op& op,
              std::vector<ir::Value*> operands, Attrs attrs, ir::Value* result);
  /// All that reads `from` reads `to`.
  void replace(ir::Value* from, ir::Value* to);
  void note_reads(ir::Operation& reader);
  /// The operation reads nothing any more.
  void forget_reads(const ir::Operation& reader);
  void erase(Place place);

  ir::Function& function_;
  Place next_;  ///< what is visited next

 private:
  std::unordered_map<const ir::Value*, std::vector<ir::Operation*>> readers_;
};

}  // namespace paddle::passes::integers
