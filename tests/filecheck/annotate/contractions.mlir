// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A reduction drops the axes that it runs along.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: func.func @main(%{{.*}}: tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?xf32, [@s]>
// CHECK: stablehlo.reduce({{.*}} : (tensor<?x3x?xf32, [@b, 3, @s]>, tensor<f32>) -> tensor<?xf32, [@s]>
func.func @main(%x: tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x3x?xf32, [@b, 3, @s]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// All inputs of a reduction have one shape: one symbol is left for the axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "m"}
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "s"}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<?x?xf32, [@m, @s]>, %{{.*}}: tensor<?x?xi32, [@m, @s]>) -> (tensor<?xf32, [@s]>, tensor<?xi32, [@s]>)
func.func @main(%x: tensor<?x?xf32, [@n, @s]>, %y: tensor<?x?xi32, [@m, @s]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce"(%x, %y, %zero, %none) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.add %i, %j : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<?x?xf32, [@n, @s]>, tensor<?x?xi32, [@m, @s]>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// Inputs of a reduction that never have one shape.
// CHECK: error: stablehlo.reduce at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@"n + 1"]>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce"(%x, %y, %zero, %none) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.add %i, %j : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@"n + 1"]>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}

// -----

// A product has the batch sizes, then what is left of the left operand, then of the right one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.dot_general {{.*}} -> tensor<?x?x?xf32, [@b, @m, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @m, @k]>, %y: tensor<?x?x?xf32, [@k, @b, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0]
    : (tensor<?x?x?xf32, [@b, @m, @k]>, tensor<?x?x?xf32, [@k, @b, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Batch sizes are equal, and so are contracted ones: a number on one side is the size on the other.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK-NOT: sym_name = "k"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x8xf32, [@c, @m, 8]>, %{{.*}}: tensor<?x8x?xf32, [@c, 8, @n]>) -> tensor<?x?x?xf32, [@c, @m, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @k]>, %y: tensor<?x8x?xf32, [@d, 8, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<?x?x?xf32, [@c, @m, @k]>, tensor<?x8x?xf32, [@d, 8, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Contracted sizes that are multiples of different numbers may still agree: the relation is checked at each call.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {divisor = 2 : i64, min = 0 : i64, name = "m"}
// CHECK-NEXT: "disc.symbol"() {divisor = 3 : i64, min = 0 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dot_general at line {{[0-9]+}}", relation = "2*n == 3*m"}
// CHECK: func.func @main
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %y: tensor<?xf32, [@"3*m"]>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"3*m"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// An even contracted size never is an odd one.
// CHECK: error: stablehlo.dot_general at line {{[0-9]+}}: the sizes 2*n and 2*m + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %y: tensor<?xf32, [@"2*m + 1"]>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"2*m + 1"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Batch sizes that never agree.
// CHECK: error: stablehlo.dot_general at line {{[0-9]+}}: the sizes b and b + 2 must be equal and never are
func.func @main(%x: tensor<?x4xf32, [@b, 4]>, %y: tensor<?x4xf32, [@"b + 2", 4]>) -> tensor<?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<?x4xf32, [@b, 4]>, tensor<?x4xf32, [@"b + 2", 4]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
