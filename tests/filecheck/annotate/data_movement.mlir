// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// What passes a barrier keeps its shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@arg0_d0]>, %{{.*}}: tensor<?x3xf32, [@arg1_d0, 3]>)
// CHECK: stablehlo.optimization_barrier %{{.*}}, %{{.*}} : tensor<?xf32, [@arg0_d0]>, tensor<?x3xf32, [@arg1_d0, 3]>
// CHECK: stablehlo.negate %{{.*}} : tensor<?xf32, [@arg0_d0]>
// CHECK: stablehlo.negate %{{.*}} : tensor<?x3xf32, [@arg1_d0, 3]>
func.func @main(%x: tensor<?xf32>, %y: tensor<?x3xf32>) -> (tensor<?xf32>, tensor<?x3xf32>) {
  %0:2 = "stablehlo.optimization_barrier"(%x, %y) : (tensor<?xf32>, tensor<?x3xf32>) -> (tensor<?xf32>, tensor<?x3xf32>)
  %1 = stablehlo.negate %0#0 : tensor<?xf32>
  %2 = stablehlo.negate %0#1 : tensor<?x3xf32>
  return %1, %2 : tensor<?xf32>, tensor<?x3xf32>
}

// -----

// What passed a barrier is compared by the size that it had before.
// CHECK: error: stablehlo.add at line {{[0-9]+}}: the sizes arg0_d0 and arg0_d0 + 1 must be equal and never are
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.optimization_barrier"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %1 = stablehlo.pad %x, %zero, low = [1], high = [0], interior = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %2 = stablehlo.add %0#0, %1 : tensor<?xf32>
  return %2, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A transposition orders the sizes anew.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.transpose %{{.*}}, dims = [2, 0, 1] : (tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?x?x3xf32, [@s, @b, 3]>
func.func @main(%x: tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?x?x3xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?x?x3xf32>
  return %0 : tensor<?x?x3xf32>
}

// -----

// A transposition to a static size that its axis never has.
// CHECK: error: stablehlo.transpose at line {{[0-9]+}}: the sizes 2*n and 5 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@"2*n", @m]>) -> tensor<?x5xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32, [@"2*n", @m]>) -> tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
}

// -----

// A static reshape says how many elements there are.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<2x3xf32>) -> tensor<6xf32>
func.func @main(%x: tensor<?x3xf32, [@n, 3]>) -> tensor<6xf32> {
  %0 = stablehlo.reshape %x : (tensor<?x3xf32, [@n, 3]>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// The number of elements is one product of two sizes, which no type states: it is checked at each call.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.reshape at line {{[0-9]+}}", relation = "m*n == 12"}
// CHECK-NEXT: func.func @main
func.func @main(%x: tensor<?x?xf32, [@n, @m]>) -> tensor<12xf32> {
  %0 = stablehlo.reshape %x : (tensor<?x?xf32, [@n, @m]>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// A reshape to a number of elements that never is.
// CHECK: error: stablehlo.reshape at line {{[0-9]+}}: the sizes 3*n and 8 must be equal and never are
func.func @main(%x: tensor<?x3xf32, [@n, 3]>) -> tensor<8xf32> {
  %0 = stablehlo.reshape %x : (tensor<?x3xf32, [@n, 3]>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Two axes become one: the number of elements is the same whatever the sizes are.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.dynamic_reshape {{.*}} -> tensor<?x4xf32, [@"b*s", 4]>
func.func @main(%x: tensor<?x?x4xf32, [@b, @s, 4]>) -> tensor<?x4xf32> {
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x4xf32, [@b, @s, 4]>) -> tensor<i32>
  %s = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x4xf32, [@b, @s, 4]>) -> tensor<i32>
  %bs = stablehlo.multiply %b, %s : tensor<i32>
  %first = stablehlo.reshape %bs : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %shape = stablehlo.concatenate %first, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x?x4xf32, [@b, @s, 4]>, tensor<2xi32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// One axis becomes two: it is a multiple of the second size.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {divisor = 4 : i64, min = 0 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_reshape at line {{[0-9]+}}", relation = "n == 4*floordiv(n, 4)"}
// CHECK: stablehlo.dynamic_reshape {{.*}} -> tensor<?x4xf32, [@"floordiv(n, 4)", 4]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?x4xf32> {
  %shape = "disc.shape"() {dims = [@"floordiv(n, 4)", 4]} : () -> tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32, [@n]>, tensor<2xi64>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// A shape that is data is read, and has as many elements as the operand; neither size is below 0.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_reshape at line {{[0-9]+}}", relation = "n == n0*n1"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_reshape at line {{[0-9]+}}", relation = "n0 >= 0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_reshape at line {{[0-9]+}}", relation = "n1 >= 0"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0, @n1]} : (tensor<2xi32>) -> ()
// CHECK: stablehlo.dynamic_reshape {{.*}} -> tensor<?x?xf32, [@n0, @n1]>
func.func @main(%x: tensor<?xf32, [@n]>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32, [@n]>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A reshape to a shape of fewer elements.
// CHECK: error: stablehlo.dynamic_reshape at line {{[0-9]+}}: the sizes 2*n + 1 and 2*n must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n + 1"]>) -> tensor<?x2xf32> {
  %shape = "disc.shape"() {dims = [@n, 2]} : () -> tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32, [@"2*n + 1"]>, tensor<2xi64>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// A slice of numbers has a static size, and the operand reaches as far.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 8 : i64, name = "n"}
// CHECK-NEXT: "disc.constraint"() {origin = "stablehlo.slice at line {{[0-9]+}}", relation = "n >= 8"}
// CHECK: stablehlo.slice %{{.*}} [1:8:3] : (tensor<?xf32, [@n]>) -> tensor<3xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<3xf32> {
  %0 = stablehlo.slice %x [1:8:3] : (tensor<?xf32, [@n]>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// A slice that reaches beyond every size that the operand may have.
// CHECK: error: stablehlo.slice at line {{[0-9]+}}: {{.*}} >= 8 must hold and never does
func.func @main(%x: tensor<?xf32, [@"min(n, 7)"]>) -> tensor<8xf32> {
  %0 = stablehlo.slice %x [0:8] : (tensor<?xf32, [@"min(n, 7)"]>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Every second element from the second one on: half as many, rounded down; the operand has the first one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 1 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n - 1 >= 0"}
// CHECK: stablehlo.real_dynamic_slice {{.*}} -> tensor<?xf32, [@"floordiv(n, 2)"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %start = stablehlo.constant dense<1> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %limit = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %step = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = stablehlo.real_dynamic_slice %x, %start, %limit, %step : (tensor<?xf32, [@n]>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Start, limit and step that are data: the step is at least 1, and the limit lies between the start and the end.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 1 : i64, name = "n0"}
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 0 : i64, name = "n1"}
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n0 >= 1"}
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n1 >= 0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n2 - n1 >= 0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n >= n2"}
// CHECK: stablehlo.real_dynamic_slice {{.*}} -> tensor<?xf32, [@"- floordiv(- n2 + n1, n0)"]>
func.func @main(%x: tensor<?xf32, [@n]>, %start: tensor<1xi32>, %limit: tensor<1xi32>, %step: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.real_dynamic_slice %x, %start, %limit, %step : (tensor<?xf32, [@n]>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A start that is data and a limit that is so much further on: the size is known, and the start is not read.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.real_dynamic_slice at line {{[0-9]+}}", relation = "n >= m"}
// CHECK-NOT: disc.bind
// CHECK: stablehlo.real_dynamic_slice {{.*}} -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %start: tensor<1xi64>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %size = "disc.shape"() {dims = [@m]} : () -> tensor<1xi64>
  %limit = stablehlo.add %start, %size : tensor<1xi64>
  %step = stablehlo.constant dense<1> : tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %start, %limit, %step : (tensor<?xf32, [@n]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A slice from data on, of fewer than no elements, whatever the steps are.
// CHECK: error: stablehlo.real_dynamic_slice at line {{[0-9]+}}: - n - 1 >= 0 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>, %start: tensor<1xi64>) -> tensor<?xf32> {
  %size = "disc.shape"() {dims = [@"-n - 1"]} : () -> tensor<1xi64>
  %limit = stablehlo.add %start, %size : tensor<1xi64>
  %step = stablehlo.constant dense<3> : tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %start, %limit, %step : (tensor<?xf32, [@n]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A slice by steps of nothing.
// CHECK: error: stablehlo.real_dynamic_slice at line {{[0-9]+}}: 0 >= 1 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %size = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %zero, %size, %zero : (tensor<?xf32, [@n]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A slice that always reaches beyond its operand.
// CHECK: error: stablehlo.real_dynamic_slice at line {{[0-9]+}}: n >= n + 1 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %size = "disc.shape"() {dims = [@"n + 1"]} : () -> tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %zero, %size, %one : (tensor<?xf32, [@n]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A slice of static sizes lies in the operand wherever it starts.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 4 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_slice at line {{[0-9]+}}", relation = "n >= 4"}
// CHECK: stablehlo.dynamic_slice {{.*}} -> tensor<4x2xf32>
func.func @main(%x: tensor<?x3xf32, [@n, 3]>, %i: tensor<i32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 2] : (tensor<?x3xf32, [@n, 3]>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// In a loop over the rows, a row is taken only where there is one: no size is asked of a call without rows.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "n"}
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.dynamic_slice {{.*}} -> tensor<1xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<1xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<1xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<1xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<?xf32, [@n]>, tensor<i32>) -> tensor<1xf32>
    %2 = stablehlo.add %sum, %1 : tensor<1xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<1xf32>
  }
  return %0#1 : tensor<1xf32>
}

// -----

// A slice that is larger than every size that the operand may have.
// CHECK: error: stablehlo.dynamic_slice at line {{[0-9]+}}: {{.*}} >= 4 must hold and never does
func.func @main(%x: tensor<?xf32, [@"mod(n, 4)"]>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<?xf32, [@"mod(n, 4)"]>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An update lies in what it changes, and the result has the shape of the latter.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_update_slice at line {{[0-9]+}}", relation = "n >= m"}
// CHECK: stablehlo.dynamic_update_slice {{.*}} -> tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>, %u: tensor<?xf32, [@m]>, %i: tensor<i32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>, tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An update that is always larger than what it changes.
// CHECK: error: stablehlo.dynamic_update_slice at line {{[0-9]+}}: n >= n + 1 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>, %u: tensor<?xf32, [@"n + 1"]>, %i: tensor<i32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<?xf32, [@n]>, tensor<?xf32, [@"n + 1"]>, tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A broadcast by sizes of arguments: an axis of one element stretches, and one of the result's size stays.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.dynamic_broadcast_in_dim {{.*}} -> tensor<?x?x?xf32, [@b, @s, @n]>
func.func @main(%x: tensor<1x?xf32, [1, @n]>, %y: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?x?xf32> {
  %shape = "disc.shape"() {dims = [@b, @s, @n]} : () -> tensor<3xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1, 2] : (tensor<1x?xf32, [1, @n]>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// An axis that may be of one element or of the result's size: one of two factors vanishes.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_broadcast_in_dim at line {{[0-9]+}}", relation = "- m*n + n^2 - n + m == 0"}
// CHECK: stablehlo.dynamic_broadcast_in_dim {{.*}} -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %shape = "disc.shape"() {dims = [@m]} : () -> tensor<1xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0] : (tensor<?xf32, [@n]>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An axis that is never of one element, and never of the result's size.
// CHECK: error: stablehlo.dynamic_broadcast_in_dim at line {{[0-9]+}}: {{.*}} == 0 must hold and never does
func.func @main(%x: tensor<?xf32, [@"n + 2"]>) -> tensor<?xf32> {
  %shape = "disc.shape"() {dims = [@"n + 5"]} : () -> tensor<1xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0] : (tensor<?xf32, [@"n + 2"]>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A concatenation adds the sizes along its axis; along the others they are equal.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: "disc.dim"() {min = 3 : i64, name = "n + m + 3"}
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@c, @n]>, %{{.*}}: tensor<?x?xf32, [@c, @m]>, %{{.*}}: tensor<?x3xf32, [@c, 3]>) -> tensor<?x?xf32, [@c, @"n + m + 3"]>
func.func @main(%x: tensor<?x?xf32, [@c, @n]>, %y: tensor<?x?xf32, [@d, @m]>, %z: tensor<?x3xf32, [@c, 3]>) -> tensor<?x?xf32> {
  %0 = stablehlo.concatenate %x, %y, %z, dim = 1 : (tensor<?x?xf32, [@c, @n]>, tensor<?x?xf32, [@d, @m]>, tensor<?x3xf32, [@c, 3]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A concatenation of what never has one size along another axis.
// CHECK: error: stablehlo.concatenate at line {{[0-9]+}}: the sizes b and b + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %y: tensor<?x?xf32, [@"b + 1", @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xf32, [@"b + 1", @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Padding at both ends and between elements, of which there is one space less than elements, or none.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.pad {{.*}} -> tensor<?x?xf32, [@"m + 3", @"2*max(0, n - 1) + n + 5"]>
func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1, 4], high = [2, 1], interior = [0, 2] : (tensor<?x?xf32, [@m, @n]>, tensor<f32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Negative padding takes elements away, which have to be there.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 3 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.pad at line {{[0-9]+}}", relation = "n - 3 >= 0"}
// CHECK: stablehlo.pad {{.*}} -> tensor<?xf32, [@"n - 3"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [-1], high = [-2], interior = [0] : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Padding to a static size that is never reached.
// CHECK: error: stablehlo.pad at line {{[0-9]+}}: the sizes 2*n + 1 and 4 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n"]>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [0], interior = [0] : (tensor<?xf32, [@"2*n"]>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Padding by sizes of arguments.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.dynamic_pad {{.*}} -> tensor<?xf32, [@"n + m + 1"]>
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = "disc.shape"() {dims = [@m]} : () -> tensor<1xi64>
  %high = stablehlo.constant dense<1> : tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %x, %zero, %low, %high, %none : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Padding between elements that is data is read, and at least 0.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {data, max = 2147483647 : i64, min = 0 : i64, name = "n0"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_pad at line {{[0-9]+}}", relation = "n0 >= 0"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0]} : (tensor<1xi32>) -> ()
// CHECK: stablehlo.dynamic_pad {{.*}} -> tensor<?xf32, [@"n0*max(0, n - 1) + n"]>
func.func @main(%x: tensor<?xf32, [@n]>, %interior: tensor<1xi32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = stablehlo.dynamic_pad %x, %zero, %none, %none, %interior : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Padding that takes more away than there is.
// CHECK: error: stablehlo.dynamic_pad at line {{[0-9]+}}: -1 >= 0 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = "disc.shape"() {dims = [@"-n"]} : () -> tensor<1xi64>
  %high = stablehlo.constant dense<-1> : tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %x, %zero, %low, %high, %none : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A size that a broadcast to static sizes stretches is 1, or the size itself.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.broadcast_in_dim at line {{[0-9]+}}", relation = "n^2 - 5*n + 4 == 0"}
// CHECK: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<?xf32, [@n]>) -> tensor<2x4xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<?xf32, [@n]>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// A broadcast puts its sizes before those of the operand.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.broadcast {{.*}} -> tensor<2x3x?xf32, [2, 3, @n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x3x?xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2, 3] : (tensor<?xf32, [@n]>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}

// -----

// A static result says what the operand's size is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<5xf32>) -> tensor<2x5xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x5xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<?xf32, [@n]>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// A result of fewer elements than the operand always has.
// CHECK: error: stablehlo.broadcast at line {{[0-9]+}}: the sizes n + 6 and 5 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"n + 6"]>) -> tensor<2x5xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<?xf32, [@"n + 6"]>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// An axis of the operand gives way to the sizes of the index, without those that go by the batch.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@c, @m, @n]>, %{{.*}}: tensor<?x?x3xi32, [@c, @k, 3]>) -> tensor<?x?x3x?xf32, [@c, @k, 3, @n]>
// CHECK: "stablehlo.torch_index_select"{{.*}} -> tensor<?x?x3x?xf32, [@c, @k, 3, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @n]>, %i: tensor<?x?x3xi32, [@d, @k, 3]>) -> tensor<?x?x3x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 1 : i64}>
    : (tensor<?x?x?xf32, [@c, @m, @n]>, tensor<?x?x3xi32, [@d, @k, 3]>) -> tensor<?x?x3x?xf32>
  return %0 : tensor<?x?x3x?xf32>
}

// -----

// Batch sizes of an operand and its indices that never agree.
// CHECK: error: stablehlo.torch_index_select at line {{[0-9]+}}: the sizes b and b + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %i: tensor<?x?xi32, [@"b + 1", @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 1 : i64}>
    : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@"b + 1", @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
