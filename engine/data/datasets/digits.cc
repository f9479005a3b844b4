#include "data/datasets/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace paddle::data {
namespace {

/// A control point in a unit box, y downwards. The curve passes through it smoothly, or, at a
/// corner, with a sharp turn.
struct Point {
  double x, y;
  bool corner = false;
};
constexpr bool kCorner = true;

using Stroke = std::vector<Point>;

/// One way of writing a digit, and how common it is.
struct Shape {
  double weight;
  std::vector<Stroke> strokes;
};

using Shapes = std::vector<Shape>;

// clang-format off
const std::array<Shapes, 10>& shapes() {
  static const std::array<Shapes, 10> kShapes = {{
    // 0: a round, a ring that ends inside, one that starts at the right
    {{3, {{{.55, .01}, {.25, .12}, {.07, .5}, {.2, .88}, {.48, 1}, {.8, .88}, {.94, .5}, {.82, .12}, {.52, .01}}}},
     {2, {{{.45, .04}, {.15, .22}, {.06, .6}, {.25, .95}, {.6, .97}, {.9, .65}, {.9, .25}, {.68, .03}, {.42, .06}, {.32, .2}}}},
     {1, {{{.7, .08}, {.4, .02}, {.12, .3}, {.1, .7}, {.4, 1}, {.8, .82}, {.95, .4}, {.8, .1}, {.6, .1}}}},
     {1, {{{.9, 0}, {.5, .06}, {.14, .3}, {.08, .7}, {.4, 1}, {.8, .85}, {.9, .45}, {.7, .15}, {.45, .1}}}},
     {.7, {{{.55, .02}, {.3, .1}, {.1, .5}, {.3, .95}, {.7, .92}, {.92, .5}, {.85, .2}, {.6, .12}, {.35, .2}}}},
     {.7, {{{.3, .04}, {.1, .4}, {.12, .8}, {.45, 1}, {.82, .85}, {.95, .45}, {.8, .12}}}},
     {1, {{{.78, .02}, {.4, .1}, {.1, .5}, {.15, .9}, {.5, .98}, {.85, .7}, {.95, .3}, {.75, .08}, {.55, .16}}}}},
    // 1: a bare stroke, one with a flag, one with flag and foot
    {{6, {{{.5, 0}, {.5, .5}, {.5, 1}}}},
     {1, {{{.5, 0}, {.47, .5}, {.53, 1}}}},
     {1, {{{.3, .2}, {.5, 0, kCorner}, {.5, .5}, {.5, 1}}}},
     {.6, {{{.25, .25}, {.5, 0, kCorner}, {.5, 1}}, {{.22, 1}, {.8, 1}}}}},
    // 2: sharp foot, curved foot, looped foot, large loop
    {{3, {{{.1, .25}, {.25, .05}, {.55, 0}, {.85, .15}, {.85, .38}, {.55, .68}, {.08, .98, kCorner}, {.5, .97}, {.97, .95}}}},
     {2, {{{.15, .18}, {.45, 0}, {.8, .18}, {.7, .5}, {.4, .78}, {.1, .95, kCorner}, {.3, .86}, {.6, .93}, {.97, .98}}}},
     {3, {{{.12, .22}, {.3, .04}, {.6, 0}, {.82, .2}, {.75, .5}, {.5, .8}, {.22, .97}, {.07, .88}, {.2, .76}, {.48, .86}, {.75, .98}, {.98, .9}}}},
     {1.5, {{{.1, .12}, {.4, 0}, {.72, .15}, {.7, .5}, {.48, .85}, {.2, 1}, {.04, .85}, {.2, .68}, {.45, .78}, {.7, .94}, {1, .86}}}},
     {2, {{{.1, .14}, {.45, .02}, {.85, .05}, {.75, .3}, {.45, .65}, {.15, .96, kCorner}, {.55, .98}, {.9, .94}}}},
     {1.5, {{{.2, .2}, {.35, .03}, {.65, .05}, {.7, .3}, {.5, .65}, {.25, .95}, {.05, 1}, {.02, .88}, {.25, .84}, {.6, .92}, {1, .94}}}},
     {1.5, {{{.15, .3}, {.3, .05}, {.6, .02}, {.8, .2}, {.76, .5}, {.5, .82}, {.2, .95}, {.05, .75}, {.25, .58}, {.55, .68}, {.75, .9}, {.98, 1}}}},
     {1, {{{.4, .12}, {.6, 0}, {.68, .2}, {.5, .6}, {.2, .93}, {.1, .98, kCorner}, {.5, .92}, {.95, .9}}}},
     {1, {{{.2, .3}, {.22, .08}, {.5, 0}, {.78, .1}, {.8, .4}, {.5, .75}, {.05, 1, kCorner}, {.95, 1}}}}},
    // 3: round, pointed middle, flat top, a loop in the middle
    {{3, {{{.1, .14}, {.4, 0}, {.78, .12}, {.74, .35}, {.38, .47, kCorner}, {.78, .57}, {.88, .82}, {.5, 1}, {.06, .88}}}},
     {2, {{{.08, .08}, {.5, 0}, {.82, .16}, {.6, .4}, {.35, .46, kCorner}, {.75, .52}, {.92, .74}, {.65, .97}, {.05, .96}}}},
     {1, {{{.08, .04}, {.85, .03, kCorner}, {.42, .4, kCorner}, {.78, .5}, {.88, .78}, {.5, 1}, {.06, .92}}}},
     {1.5, {{{.1, .15}, {.48, 0}, {.8, .16}, {.62, .42}, {.4, .5}, {.42, .42}, {.7, .5}, {.88, .74}, {.6, 1}, {.06, .88}}}},
     {1.5, {{{.02, .12}, {.4, 0}, {.8, .1}, {.7, .3}, {.4, .42}, {.75, .5}, {.96, .72}, {.7, .95}, {.35, 1}, {.02, .94}}}},
     {1, {{{.1, .1}, {.5, .02}, {.72, .16}, {.5, .38}, {.3, .44}, {.6, .46}, {.78, .65}, {.65, .9}, {.3, 1}, {.15, .85}}}},
     {1, {{{.2, .06}, {.6, .02}, {.8, .18}, {.62, .38}, {.52, .45, kCorner}, {.72, .58}, {.72, .85}, {.4, 1}, {.1, .94}}}}},
    // 4: open square, open round, closed, closed small, hooked like a 9
    {{3, {{{.12, .05}, {.08, .3}, {.06, .55, kCorner}, {.45, .54}, {.92, .5}}, {{.8, .02}, {.76, .5}, {.72, 1}}}},
     {3, {{{.14, .02}, {.08, .36}, {.25, .54}, {.55, .5}, {.8, .38}}, {{.88, 0}, {.82, .4}, {.78, 1}}}},
     {2, {{{.66, 0}, {.35, .32}, {.04, .64, kCorner}, {.5, .64}, {.97, .62}}, {{.68, .02}, {.68, .5}, {.66, 1}}}},
     {1, {{{.62, 0}, {.3, .3}, {.08, .58, kCorner}, {.45, .56}, {.78, .5}}, {{.78, .22}, {.72, .6}, {.66, 1}}}},
     {1.5, {{{.2, 0}, {.06, .35}, {.1, .52}, {.4, .52}, {.86, .1, kCorner}, {.78, .5}, {.68, 1}}}},
     {1, {{{.25, 0}, {.15, .25}, {.05, .5, kCorner}, {.5, .52}, {1, .5}}, {{.6, .2}, {.58, .6}, {.5, 1}}}}},
    // 5: angular, with a separate bar, round, slanting bar
    {{3, {{{.9, .03}, {.6, .03}, {.27, .04, kCorner}, {.2, .42, kCorner}, {.52, .36}, {.86, .58}, {.76, .92}, {.4, 1}, {.05, .9}}}},
     {2, {{{.28, .08}, {.22, .44, kCorner}, {.56, .4}, {.84, .65}, {.64, .96}, {.08, .96}}, {{.26, .06}, {.6, .04}, {.97, 0}}}},
     {2, {{{.95, .04}, {.6, .04}, {.36, .08}, {.28, .34}, {.48, .44}, {.78, .6}, {.74, .88}, {.4, 1}, {.04, .9}}}},
     {1.5, {{{1, 0}, {.7, .08}, {.4, .1, kCorner}, {.3, .42}, {.5, .5}, {.7, .65}, {.6, .9}, {.3, 1}, {.02, .94}}}},
     {1, {{{1, .02}, {.6, .1}, {.28, .14, kCorner}, {.2, .46, kCorner}, {.5, .5}, {.7, .7}, {.5, .95}, {.02, 1}}}},
     {1, {{{.2, .15}, {.15, .48, kCorner}, {.5, .45}, {.74, .64}, {.6, .92}, {.25, 1}, {.05, .9}}, {{.2, .15}, {.6, .08}, {.95, .1}}}},
     {1, {{{.22, .05}, {.2, .4}, {.5, .36}, {.8, .56}, {.74, .9}, {.4, 1}, {.1, .9}}, {{.22, .05}, {.9, .05}}}}},
    // 6: open arch, straight back, tight curl, wide belly
    {{3, {{{.74, 0}, {.38, .22}, {.1, .65}, {.24, .95}, {.6, 1}, {.86, .8}, {.66, .58}, {.36, .62}, {.15, .82}}}},
     {3, {{{.48, 0}, {.2, .38}, {.1, .75}, {.3, 1}, {.7, .95}, {.8, .7}, {.5, .56}, {.14, .76}}}},
     {2, {{{.86, .06}, {.6, .02}, {.25, .28}, {.08, .7}, {.3, 1}, {.72, .96}, {.88, .72}, {.6, .54}, {.2, .68}}}},
     {1.5, {{{.3, 0}, {.14, .4}, {.1, .8}, {.4, 1}, {.82, .86}, {.8, .62}, {.45, .58}, {.14, .8}}}},
     {2, {{{.55, 0}, {.25, .35}, {.12, .7}, {.3, .98}, {.68, .98}, {.85, .72}, {.65, .52}, {.3, .6}, {.12, .7}}}},
     {1, {{{.4, 0}, {.15, .4}, {.1, .8}, {.4, 1}, {.85, .85}, {.9, .5}, {.6, .38}, {.25, .6}, {.15, .8}}}},
     {1, {{{.2, 0}, {.12, .5}, {.25, .95}, {.6, 1}, {.85, .75}, {.65, .5}, {.35, .6}, {.28, .85}}}},
     {1, {{{.95, 0}, {.5, .3}, {.15, .7}, {.25, .97}, {.55, .95}, {.72, .75}, {.5, .65}, {.22, .82}}}}},
    // 7: plain, curved, with a cross-bar, with a serif
    {{4, {{{.05, .08}, {.5, .05}, {.92, .04, kCorner}, {.62, .48}, {.4, 1}}}},
     {2, {{{.05, .18}, {.3, .06}, {.6, .09}, {.9, .04, kCorner}, {.7, .4}, {.55, 1}}}},
     {1.5, {{{.05, .06}, {.9, .04, kCorner}, {.6, .5}, {.4, 1}}, {{.28, .52}, {.85, .48}}}},
     {1, {{{.08, .25}, {.1, .06, kCorner}, {.9, .05, kCorner}, {.65, .45}, {.48, 1}}}},
     {1.5, {{{.1, .3}, {.06, .1}, {.4, .06}, {.85, .06, kCorner}, {.72, .5}, {.62, 1}}}},
     {1, {{{.02, .3}, {.2, .08}, {.55, .1}, {.85, .02}, {.8, .3}, {.6, .65}, {.45, 1}}}},
     {1, {{{.1, .08}, {.55, .06}, {.8, .08, kCorner}, {.74, .5}, {.7, 1}}}},
     {.8, {{{.02, .1}, {.2, .04}, {.5, .08}, {.85, .06, kCorner}, {.6, .5}, {.35, 1}}, {{.3, .6}, {.9, .45}}}},
     {1.5, {{{.02, .12}, {.4, .1}, {.78, .02}, {.92, .12}, {.75, .45}, {.5, 1}}}}},
    // 8: one line from the top right, one from the middle, two rings, narrow top
    {{4, {{{.76, .12}, {.45, 0}, {.18, .2}, {.48, .46}, {.84, .75}, {.5, 1}, {.14, .8}, {.48, .48}, {.82, .22}, {.72, .06}}}},
     {2, {{{.9, .08}, {.55, 0}, {.2, .14}, {.3, .38}, {.62, .56}, {.7, .85}, {.4, 1}, {.14, .84}, {.4, .54}, {.88, .16}}}},
     {1.5, {{{.5, 0}, {.2, .12}, {.25, .38}, {.52, .46}, {.78, .34}, {.78, .1}, {.48, 0}}, {{.5, .46}, {.16, .6}, {.18, .9}, {.5, 1}, {.84, .88}, {.82, .6}, {.5, .46}}}},
     {1.5, {{{.5, .48}, {.22, .3}, {.3, .04}, {.66, .02}, {.76, .26}, {.48, .5}, {.16, .74}, {.3, .98}, {.66, .98}, {.8, .74}, {.5, .46}}}},
     {1.5, {{{.2, .1}, {.15, .3}, {.45, .5}, {.72, .72}, {.6, .97}, {.3, .97}, {.3, .7}, {.6, .42}, {.85, .12}, {.5, .02}, {.2, .1}}}},
     {1.5, {{{.85, .1}, {.5, .02}, {.15, .15}, {.3, .38}, {.55, .5}, {.66, .75}, {.45, 1}, {.28, .8}, {.45, .52}, {.75, .3}, {.86, .08}}}},
     {1, {{{.8, .3}, {.85, .05}, {.4, .02}, {.1, .2}, {.4, .45}, {.75, .7}, {.6, .98}, {.25, .98}, {.2, .7}, {.55, .5}, {.98, .3}}}},
     {1, {{{.1, .1}, {.4, .35}, {.75, .7}, {.6, 1}, {.25, .95}, {.35, .6}, {.8, .2}, {.75, .02}, {.3, .02}, {.08, .14}}}},
     {1.5, {{{.95, 0}, {.6, .04}, {.3, .2}, {.5, .45}, {.6, .72}, {.35, 1}, {.08, .86}, {.35, .55}, {.8, .3}, {.92, .05}}}}},
    // 9: straight leg, curved leg, small ring, open ring, leg apart
    {{3, {{{.8, .14}, {.5, 0}, {.14, .2}, {.22, .45}, {.55, .44}, {.82, .14, kCorner}, {.76, .5}, {.66, 1}}}},
     {2, {{{.82, .16}, {.45, 0}, {.12, .2}, {.3, .48}, {.7, .38}, {.84, .14}, {.84, .55}, {.66, .92}, {.3, 1}, {.1, .9}}}},
     {2, {{{.78, .1}, {.42, .02}, {.14, .26}, {.36, .46}, {.68, .3}, {.8, .08}, {.74, .5}, {.56, 1}}}},
     {2, {{{.86, .06}, {.5, .02}, {.16, .22}, {.2, .44}, {.55, .42}, {.86, .1}, {.8, .4}, {.6, .7}, {.4, 1}}}},
     {1.5, {{{.7, .04}, {.35, .06}, {.1, .28}, {.3, .5}, {.62, .4}, {.85, .05, kCorner}, {.84, .5}, {.8, 1}}}},
     {1, {{{.85, .2}, {.6, 0}, {.2, .08}, {.1, .38}, {.4, .55}, {.75, .4}, {.86, .2}, {.84, .6}, {.6, 1}}}},
     {1, {{{.72, .18}, {.5, .02}, {.28, .16}, {.35, .38}, {.6, .38}, {.76, .16}, {.72, .55}, {.6, 1}}}},
     {2, {{{.86, .24}, {.7, .05}, {.4, .01}, {.12, .16}, {.12, .38}, {.38, .5}, {.7, .42}, {.87, .2, kCorner}, {.84, .6}, {.78, 1}}}},
     {2, {{{.8, .12}, {.5, .01}, {.2, .1}, {.12, .32}, {.35, .46}, {.65, .36}, {.82, .14}, {.88, .1, kCorner}, {.8, .55}, {.74, 1}}}},
     {1, {{{.65, .02}, {.3, .04}, {.12, .22}, {.28, .42}, {.6, .38}, {.82, .18}, {.84, .06, kCorner}, {.86, .55}, {.9, 1}}}},
     {1, {{{.88, .02}, {.55, .0}, {.2, .16}, {.14, .36}, {.4, .44}, {.75, .3}, {.9, .08, kCorner}, {.7, .55}, {.55, 1}}}},
     {1, {{{.75, .25}, {.5, .02}, {.15, .15}, {.18, .42}, {.55, .45}, {.78, .2}}, {{.8, .05}, {.8, .5}, {.78, 1}}}}},
  }};
  return kShapes;
}
// clang-format on

struct Vertex {
  double x, y;
};

/// Points of a centripetal-like Catmull-Rom spline through `stroke`, corners kept sharp.
void flatten(const Stroke& stroke, std::vector<Vertex>& out) {
  constexpr int kSteps = 10;
  const size_t last = stroke.size() - 1;
  const auto tangent = [&](size_t i, bool leaving) {
    const size_t before = i == 0 || (stroke[i].corner && leaving) ? i : i - 1;
    const size_t after = i == last || (stroke[i].corner && !leaving) ? i : i + 1;
    const double scale = after - before == 2 ? 0.5 : 1.0;
    return Vertex{(stroke[after].x - stroke[before].x) * scale,
                  (stroke[after].y - stroke[before].y) * scale};
  };
  for (size_t i = 0; i < last; ++i) {
    const Point &a = stroke[i], &b = stroke[i + 1];
    const Vertex ta = tangent(i, true), tb = tangent(i + 1, false);
    for (int step = i == 0 ? 0 : 1; step <= kSteps; ++step) {
      const double t = static_cast<double>(step) / kSteps, u = t * t, v = u * t;
      const double h0 = 2 * v - 3 * u + 1, h1 = v - 2 * u + t, h2 = 3 * u - 2 * v, h3 = v - u;
      out.push_back({h0 * a.x + h1 * ta.x + h2 * b.x + h3 * tb.x,
                     h0 * a.y + h1 * ta.y + h2 * b.y + h3 * tb.y});
    }
  }
}

/// The bend, slant, turn and stretch of one drawing.
class Warp {
 public:
  explicit Warp(RandomSequence& random) {
    const double slant = 0.15 + 0.25 * random.normal();
    const double turn = 0.1 * random.normal();
    const double width = 0.9 * std::exp(0.3 * random.normal());
    const double cosine = std::cos(turn), sine = std::sin(turn);
    // Stretch, then shear to the right going up, then turn.
    xx_ = cosine * width, xy_ = -cosine * slant - sine;
    yx_ = sine * width, yy_ = -sine * slant + cosine;
    for (Wave& wave : waves_)
      wave = {0.035 * random.normal(), 0.035 * random.normal(), random.uniform(-1.2, 1.2),
              random.uniform(-1.2, 1.2), random.uniform(0, 1)};
  }
  Vertex operator()(Vertex p) const {
    for (const Wave& wave : waves_) {
      const double s =
          std::sin(2 * std::numbers::pi * (wave.fx * p.x + wave.fy * p.y + wave.phase));
      p.x += wave.ax * s;
      p.y += wave.ay * s;
    }
    return {xx_ * p.x + xy_ * p.y, yx_ * p.x + yy_ * p.y};
  }

 private:
  struct Wave {
    double ax, ay, fx, fy, phase;
  };
  double xx_, xy_, yx_, yy_;
  std::array<Wave, 2> waves_;
};

const Shape& choose(const Shapes& of, RandomSequence& random) {
  double total = 0;
  for (const Shape& shape : of) total += shape.weight;
  double at = random.uniform(0, total);
  for (const Shape& shape : of)
    if ((at -= shape.weight) < 0) return shape;
  return of.back();
}

using Canvas = std::array<float, kDigitSide * kDigitSide>;

/// Darkens the pixels that a pen of radius ra to rb touches on its way from a to b.
void draw_segment(Vertex a, Vertex b, double ra, double rb, Canvas& canvas) {
  const double reach = std::max(ra, rb) + 0.5;  // there is no ink further away
  const auto low = [&](double v) { return std::max(0, static_cast<int>(std::ceil(v - reach))); };
  const auto high = [&](double v) {
    return std::min(kDigitSide - 1, static_cast<int>(std::floor(v + reach)));
  };
  const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  for (int y = low(std::min(a.y, b.y)); y <= high(std::max(a.y, b.y)); ++y)
    for (int x = low(std::min(a.x, b.x)); x <= high(std::max(a.x, b.x)); ++x) {
      const double px = x - a.x, py = y - a.y;
      const double t = length2 > 0 ? std::clamp((px * dx + py * dy) / length2, 0.0, 1.0) : 0.0;
      const double distance =
          std::sqrt((px - t * dx) * (px - t * dx) + (py - t * dy) * (py - t * dy));
      const double ink = std::clamp(ra + t * (rb - ra) + 0.5 - distance, 0.0, 1.0);
      float& pixel = canvas[static_cast<size_t>(y * kDigitSide + x)];
      pixel = std::max(pixel, static_cast<float>(ink));
    }
}

/// Moves the content so that its center of mass is in the middle of the canvas, by whole pixels.
void center(Canvas& canvas) {
  double mass = 1e-9, mx = 0, my = 0;
  for (int y = 0; y < kDigitSide; ++y)
    for (int x = 0; x < kDigitSide; ++x) {
      const double ink = canvas[static_cast<size_t>(y * kDigitSide + x)];
      mass += ink, mx += ink * x, my += ink * y;
    }
  const int dx = static_cast<int>(std::lround((kDigitSide - 1) / 2.0 - mx / mass));
  const int dy = static_cast<int>(std::lround((kDigitSide - 1) / 2.0 - my / mass));
  Canvas moved{};
  for (int y = 0; y < kDigitSide; ++y)
    for (int x = 0; x < kDigitSide; ++x) {
      const int fx = x - dx, fy = y - dy;
      if (fx >= 0 && fx < kDigitSide && fy >= 0 && fy < kDigitSide)
        moved[static_cast<size_t>(y * kDigitSide + x)] =
            canvas[static_cast<size_t>(fy * kDigitSide + fx)];
    }
  canvas = moved;
}

/// Softens edges as scanning and shrinking do: each pixel passes `share` on to its neighbors.
void blur(Canvas& canvas, float share) {
  for (const int stride : {1, kDigitSide}) {
    const Canvas from = canvas;
    for (int i = 0; i < kDigitSide * kDigitSide; ++i) {
      const int at = stride == 1 ? i % kDigitSide : i / kDigitSide;
      const float before = at > 0 ? from[static_cast<size_t>(i - stride)] : 0.f;
      const float after = at + 1 < kDigitSide ? from[static_cast<size_t>(i + stride)] : 0.f;
      canvas[static_cast<size_t>(i)] =
          (1 - share) * from[static_cast<size_t>(i)] + 0.5f * share * (before + after);
    }
  }
}

}  // namespace

void draw_digit(int label, RandomSequence& random,
                std::span<uint8_t, kDigitSide * kDigitSide> image) {
  const Shape& shape = choose(shapes()[static_cast<size_t>(label)], random);
  const double wobble = 0.015 + 0.045 * random.uniform();
  const Warp warp(random);
  std::vector<std::vector<Vertex>> lines;
  for (Stroke stroke : shape.strokes) {
    for (Point& point : stroke) {
      point.x += wobble * random.normal();
      point.y += wobble * random.normal();
    }
    std::vector<Vertex> line;
    flatten(stroke, line);
    for (Vertex& vertex : line) vertex = warp(vertex);
    lines.push_back(std::move(line));
  }

  // Into the box of 20 x 20 pixels, pen width included.
  Vertex low{1e9, 1e9}, high{-1e9, -1e9};
  for (const auto& line : lines)
    for (const Vertex& v : line) {
      low = {std::min(low.x, v.x), std::min(low.y, v.y)};
      high = {std::max(high.x, v.x), std::max(high.y, v.y)};
    }
  const double radius = std::clamp(1.25 * std::exp(0.3 * random.normal()), 0.6, 2.4);
  const double box = 20 - 2 * radius;
  const double scale = box / std::max({high.x - low.x, high.y - low.y, 1e-3});
  const double middle = (kDigitSide - 1) / 2.0;
  const double pressure = 0.2 * random.uniform(), phase = random.uniform(0, 6.28);
  Canvas canvas{};
  for (auto& line : lines) {
    for (Vertex& v : line)
      v = {middle + (v.x - (low.x + high.x) / 2) * scale,
           middle + (v.y - (low.y + high.y) / 2) * scale};
    const auto pen = [&](size_t i) {
      return radius * (1 + pressure * std::sin(phase + 0.15 * static_cast<double>(i)));
    };
    for (size_t i = 0; i + 1 < line.size(); ++i)
      draw_segment(line[i], line[i + 1], pen(i), pen(i + 1), canvas);
  }
  blur(canvas, static_cast<float>(random.uniform(0.0, 0.3)));
  center(canvas);
  const float contrast = static_cast<float>(random.uniform(1.05, 1.6));
  for (size_t i = 0; i < canvas.size(); ++i)
    image[i] = static_cast<uint8_t>(std::lround(std::min(1.f, canvas[i] * contrast) * 255));
}

}  // namespace paddle::data
