// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// Functions of one float keep the shape: roots and exponentials.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.cbrt %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.exponential %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.exponential_minus_one %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.log %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.log_plus_one %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.rsqrt %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32> {
  %0 = stablehlo.cbrt %x : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %1 = stablehlo.exponential %0 : tensor<?x?xf32>
  %2 = stablehlo.exponential_minus_one %1 : tensor<?x?xf32>
  %3 = stablehlo.log %2 : tensor<?x?xf32>
  %4 = stablehlo.log_plus_one %3 : tensor<?x?xf32>
  %5 = stablehlo.rsqrt %4 : tensor<?x?xf32>
  return %5 : tensor<?x?xf32>
}

// -----

// Functions of one float keep the shape: circles, and curves like them.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.cosine %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.sine %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.tan %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.tanh %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.logistic %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.sqrt %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32> {
  %0 = stablehlo.cosine %x : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %1 = stablehlo.sine %0 : tensor<?x?xf32>
  %2 = stablehlo.tan %1 : tensor<?x?xf32>
  %3 = stablehlo.tanh %2 : tensor<?x?xf32>
  %4 = stablehlo.logistic %3 : tensor<?x?xf32>
  %5 = stablehlo.sqrt %4 : tensor<?x?xf32>
  return %5 : tensor<?x?xf32>
}

// -----

// Functions of one float keep the shape: signs and roundings.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.abs %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.negate %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.sign %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.ceil %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.floor %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.round_nearest_afz %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.round_nearest_even %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32> {
  %0 = stablehlo.abs %x : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %1 = stablehlo.negate %0 : tensor<?x?xf32>
  %2 = stablehlo.sign %1 : tensor<?x?xf32>
  %3 = stablehlo.ceil %2 : tensor<?x?xf32>
  %4 = stablehlo.floor %3 : tensor<?x?xf32>
  %5 = stablehlo.round_nearest_afz %4 : tensor<?x?xf32>
  %6 = stablehlo.round_nearest_even %5 : tensor<?x?xf32>
  return %6 : tensor<?x?xf32>
}

// -----

// Functions of one integer keep the shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.not %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.popcnt %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.count_leading_zeros %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xi32, [@b, @s]>
func.func @main(%x: tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32> {
  %0 = stablehlo.not %x : (tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %1 = stablehlo.popcnt %0 : tensor<?x?xi32>
  %2 = stablehlo.count_leading_zeros %1 : tensor<?x?xi32>
  return %2 : tensor<?x?xi32>
}

// -----

// Functions of two floats have the shape that both have.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.subtract %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.multiply %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.divide %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.power %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.remainder %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK: stablehlo.atan2 %{{.*}}, %{{.*}} : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %y: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32> {
  %0 = stablehlo.add %x, %y : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %1 = stablehlo.subtract %0, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %2 = stablehlo.multiply %1, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %3 = stablehlo.divide %2, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %4 = stablehlo.power %3, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %5 = stablehlo.remainder %4, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  %6 = stablehlo.atan2 %5, %y : (tensor<?x?xf32>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  return %6 : tensor<?x?xf32>
}

// -----

// Functions of two integers have the shape that both have.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.maximum %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.minimum %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.and %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.or %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.xor %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xi32, [@b, @s]>
func.func @main(%x: tensor<?x?xi32, [@b, @s]>, %y: tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32> {
  %0 = stablehlo.maximum %x, %y : (tensor<?x?xi32, [@b, @s]>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %1 = stablehlo.minimum %0, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %2 = stablehlo.and %1, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %3 = stablehlo.or %2, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %4 = stablehlo.xor %3, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  return %4 : tensor<?x?xi32>
}

// -----

// Shifts have the shape that both operands have.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.shift_left %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.shift_right_arithmetic %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK: stablehlo.shift_right_logical %{{.*}}, %{{.*}} : tensor<?x?xi32, [@b, @s]>
// CHECK-NEXT: return %{{.*}} : tensor<?x?xi32, [@b, @s]>
func.func @main(%x: tensor<?x?xi32, [@b, @s]>, %y: tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32> {
  %0 = stablehlo.shift_left %x, %y : (tensor<?x?xi32, [@b, @s]>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %1 = stablehlo.shift_right_arithmetic %0, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  %2 = stablehlo.shift_right_logical %1, %y : (tensor<?x?xi32>, tensor<?x?xi32, [@b, @s]>) -> tensor<?x?xi32>
  return %2 : tensor<?x?xi32>
}

// -----

// Ops that change the element type keep the shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.convert %{{.*}} : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf64, [@b, @s]>
// CHECK: stablehlo.is_finite %{{.*}} : (tensor<?x?xf64, [@b, @s]>) -> tensor<?x?xi1, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1> {
  %0 = stablehlo.convert %x : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf64>
  %1 = stablehlo.is_finite %0 : (tensor<?x?xf64>) -> tensor<?x?xi1>
  return %1 : tensor<?x?xi1>
}

// -----

// A precision that is cut keeps the shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.reduce_precision %{{.*}}, format = e5m10 : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.reduce_precision %x, format = e5m10 : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Complex numbers are made of two parts and taken apart.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: stablehlo.complex %{{.*}}, %{{.*}} : tensor<?xcomplex<f32>, [@m]>
// CHECK: stablehlo.real %{{.*}} : (tensor<?xcomplex<f32>, [@m]>) -> tensor<?xf32, [@m]>
// CHECK: stablehlo.imag %{{.*}} : (tensor<?xcomplex<f32>, [@m]>) -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = stablehlo.complex %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// Operands of an addition have one shape: one symbol is left of two, in the arguments' types as well.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "m"}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<?xf32, [@m]>, %{{.*}}: tensor<?xf32, [@m]>) -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A number among the operands' sizes is the size of all of them, on each axis by itself.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<3x4xf32>, %{{.*}}: tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @main(%x: tensor<?x4xf32, [@n, 4]>, %y: tensor<3x?xf32, [3, @m]>) -> tensor<?x?xf32> {
  %0 = stablehlo.multiply %x, %y : (tensor<?x4xf32, [@n, 4]>, tensor<3x?xf32, [3, @m]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A static result gives its sizes to the operands.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A size that is a multiple of another one's symbol: the product is the constraint of a call.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.add at line {{[0-9]+}}", relation = "2*n == m*p"}
// CHECK-NEXT: func.func @main
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %y: tensor<?xf32, [@"m*p"]>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"m*p"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Sizes of which one is larger whatever the caller chooses.
// CHECK: error: stablehlo.subtract at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %0 = stablehlo.subtract %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A static result that no size of the operand is.
// CHECK: error: stablehlo.negate at line {{[0-9]+}}: the sizes 3*n and 4 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"3*n"]>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : (tensor<?xf32, [@"3*n"]>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A comparison has the operands' shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@m]>, %{{.*}}: tensor<?xf32, [@m]>) -> tensor<?xi1, [@m]>
// CHECK: stablehlo.compare LT, {{.*}} -> tensor<?xi1, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xi1> {
  %0 = stablehlo.compare LT, %x, %y : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xi1>
  return %0 : tensor<?xi1>
}

// -----

// A choice by element: the predicate has the shape of both.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "k"}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<?xi1, [@k]>, %{{.*}}: tensor<?xf32, [@k]>, %{{.*}}: tensor<?xf32, [@k]>) -> tensor<?xf32, [@k]>
// CHECK: stablehlo.select {{.*}}tensor<?xf32, [@k]>
func.func @main(%p: tensor<?xi1, [@k]>, %x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = "stablehlo.select"(%p, %x, %y) : (tensor<?xi1, [@k]>, tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A choice by one boolean, which has no sizes to compare.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<i1>, %{{.*}}: tensor<?xf32, [@m]>, %{{.*}}: tensor<?xf32, [@m]>) -> tensor<?xf32, [@m]>
func.func @main(%p: tensor<i1>, %x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = "stablehlo.select"(%p, %x, %y) : (tensor<i1>, tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A predicate that never has as many elements as there are to choose from.
// CHECK: error: stablehlo.select at line {{[0-9]+}}: the sizes 2*n and 2*m + 1 must be equal and never are
func.func @main(%p: tensor<?xi1, [@"2*n"]>, %x: tensor<?xf32, [@"2*m + 1"]>) -> tensor<?xf32> {
  %0 = "stablehlo.select"(%p, %x, %x) : (tensor<?xi1, [@"2*n"]>, tensor<?xf32, [@"2*m + 1"]>, tensor<?xf32, [@"2*m + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Bounds of a clamp have the shape of what they bound.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "k"}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<?xf32, [@k]>, %{{.*}}: tensor<?xf32, [@k]>, %{{.*}}: tensor<?xf32, [@k]>) -> tensor<?xf32, [@k]>
// CHECK: stablehlo.clamp {{.*}}tensor<?xf32, [@k]>
func.func @main(%a: tensor<?xf32, [@k]>, %x: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = "stablehlo.clamp"(%a, %x, %b) : (tensor<?xf32, [@k]>, tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Bounds of a clamp that are numbers are not compared with the sizes.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<f32>, %{{.*}}: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]>
func.func @main(%a: tensor<f32>, %x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.clamp"(%a, %x, %a) : (tensor<f32>, tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A bound of a clamp that never has the shape of what it bounds.
// CHECK: error: stablehlo.clamp at line {{[0-9]+}}: the sizes n + 1 and n must be equal and never are
func.func @main(%a: tensor<?xf32, [@"n + 1"]>, %x: tensor<?xf32, [@n]>, %b: tensor<f32>) -> tensor<?xf32> {
  %0 = "stablehlo.clamp"(%a, %x, %b) : (tensor<?xf32, [@"n + 1"]>, tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Bits of one width keep the shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}

// -----

// Bits of a wider type are split over a new last axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<?xi64, [@n]>) -> tensor<?x4xi16, [@n, 4]>
func.func @main(%x: tensor<?xi64, [@n]>) -> tensor<?x?xi16> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xi64, [@n]>) -> tensor<?x?xi16>
  return %0 : tensor<?x?xi16>
}

// -----

// Bits of a narrower type are put together along the last axis, whose size this tells.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "m"
// CHECK: func.func @main(%{{.*}}: tensor<?x4xi8, [@n, 4]>) -> tensor<?xf32, [@n]>
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<?x4xi8, [@n, 4]>) -> tensor<?xf32, [@n]>
func.func @main(%x: tensor<?x?xi8, [@n, @m]>) -> tensor<?xf32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x?xi8, [@n, @m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A last axis of which the wider elements never can be made.
// CHECK: error: stablehlo.bitcast_convert at line {{[0-9]+}}: the sizes 3*m and 4 must be equal and never are
func.func @main(%x: tensor<?x?xi8, [@n, @"3*m"]>) -> tensor<?xf32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x?xi8, [@n, @"3*m"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// The sizes of an iota are the elements of its operand.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.dim"() {min = 3 : i64, name = "n + 3"}
// CHECK: stablehlo.dynamic_iota {{.*}} -> tensor<?x4xi32, [@"n + 3", 4]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x?xi32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %sum = stablehlo.add %n, %three : tensor<i32>
  %first = stablehlo.reshape %sum : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %shape = stablehlo.concatenate %first, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}

// -----

// An iota whose size is data has a symbol that is bound where the data is known, and no less than 0 elements.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 0 : i64, name = "n0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_iota at line {{[0-9]+}}", relation = "n0 >= 0"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0]} : (tensor<1xi32>) -> ()
// CHECK: stablehlo.dynamic_iota {{.*}} -> tensor<?xi32, [@n0]>
func.func @main(%n: tensor<1xi32>) -> tensor<?xi32> {
  %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// An iota of fewer than no elements.
// CHECK: error: stablehlo.dynamic_iota at line {{[0-9]+}}: - n - 1 >= 0 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xi32> {
  %shape = "disc.shape"() {dims = [@"-n - 1"]} : () -> tensor<1xi64>
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// An iota in a branch, where no size can be read from data, is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK: stablehlo.dynamic_iota {{.*}}: its size depends on the elements of a tensor
func.func @main(%p: tensor<i1>, %n: tensor<1xi32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }, {
    stablehlo.return %zero : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

// Shapes that the program states stay as they are.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.constant dense<1> : tensor<3x4xi32>
// CHECK: stablehlo.iota dim = 1 : tensor<3x4xi32>
// CHECK: stablehlo.get_dimension_size %{{.*}}, dim = 1 : (tensor<?x?xf32, [@b, @s]>) -> tensor<i32>
// CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> (tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>) {
  %0 = stablehlo.constant dense<1> : tensor<3x4xi32>
  %1 = stablehlo.iota dim = 1 : tensor<3x4xi32>
  %2 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32, [@b, @s]>) -> tensor<i32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
  return %0, %1, %3 : tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>
}

// -----

// A shape in the compiler's own form gives the sizes of what is made by it.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.shape"() {dims = [@"2*n", 4]} : () -> tensor<2xi64>
// CHECK: stablehlo.dynamic_iota {{.*}} -> tensor<?x4xi32, [@"2*n", 4]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x?xi32> {
  %shape = "disc.shape"() {dims = [@"2*n", 4]} : () -> tensor<2xi64>
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}

// -----

// All operands of a map have one shape, which is the result's.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@m]>, %{{.*}}: tensor<?xi32, [@m]>) -> tensor<?xf32, [@m]>
// CHECK: "stablehlo.map"
// CHECK: (tensor<?xf32, [@m]>, tensor<?xi32, [@m]>) -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@m]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>):
    %1 = stablehlo.convert %b : (tensor<i32>) -> tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Operands of a map that never have one shape.
// CHECK: error: stablehlo.map at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A reversal keeps the shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.reverse %{{.*}}, dims = [1] : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.reverse"(%x) <{dimensions = array<i64: 1>}> : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// What is sorted together has one shape, and so have all results.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@m, @s]>, %{{.*}}: tensor<?x?xi32, [@m, @s]>) -> (tensor<?x?xf32, [@m, @s]>, tensor<?x?xi32, [@m, @s]>)
// CHECK: "stablehlo.sort"
func.func @main(%x: tensor<?x?xf32, [@n, @s]>, %y: tensor<?x?xi32, [@m, @s]>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@n, @s]>, tensor<?x?xi32, [@m, @s]>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}

// -----

// What is sorted together and never has one shape.
// CHECK: error: stablehlo.sort at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@"n + 1"]>) -> tensor<?xf32> {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@"n + 1"]>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0 : tensor<?xf32>
}

// -----

// Quantized values have the shape of the floats that they stand for.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.uniform_quantize %{{.*}} : (tensor<?xf32, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 5.000000e-01>, [@n]>
// CHECK: stablehlo.uniform_dequantize %{{.*}} : (tensor<?x!quant.uniform<i8:f32, 5.000000e-01>, [@n]>) -> tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<?xf32, [@n]>) -> tensor<?x!quant.uniform<i8:f32, 0.5>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<?x!quant.uniform<i8:f32, 0.5>>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
