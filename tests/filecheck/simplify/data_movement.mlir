// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A broadcast and a transpose that move nothing are gone.
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0

// -----

// A transpose of a square moves something, although the types are one.
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.transpose %arg0, dims = [1, 0]

// -----

// Two broadcasts are one.
func.func @main(%x: tensor<?xf32, [@b]>, %y: tensor<?x?x4xf32, [@a, @b, 4]>) -> tensor<?x?x4xf32> {
  %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x?x4xf32, [@a, @b, 4]>) -> tensor<i32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %inner = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %s = stablehlo.concatenate %m1, %inner, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %inner, dims = [0] : (tensor<?xf32, [@b]>, tensor<2xi32>) -> tensor<?x4xf32>
  %1 = stablehlo.dynamic_broadcast_in_dim %0, %s, dims = [1, 2] : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<?x?x4xf32>
  return %1 : tensor<?x?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = "disc.shape"() {dims = [@a, @b, 4]}
// CHECK-NEXT: stablehlo.dynamic_broadcast_in_dim %arg0, %[[S]], dims = [1]
// CHECK-NEXT: return

// -----

// Of two reshapes the last one counts.
func.func @main(%x: tensor<?x6xf32, [@b, 6]>) -> tensor<?x3x2xf32> {
  %m1 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x6xf32, [@b, 6]>) -> tensor<i32>
  %n = stablehlo.reshape %m1 : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<[2]> : tensor<1xi32>
  %three = stablehlo.constant dense<[3]> : tensor<1xi32>
  %s = stablehlo.concatenate %n, %two, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %t = stablehlo.concatenate %n, %three, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x6xf32, [@b, 6]>, tensor<3xi32>) -> tensor<?x2x3xf32>
  %1 = stablehlo.dynamic_reshape %0, %t : (tensor<?x2x3xf32>, tensor<3xi32>) -> tensor<?x3x2xf32>
  return %1 : tensor<?x3x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dynamic_reshape %arg0, {{.*}} -> tensor<?x3x2xf32, [@b, 3, 2]>
// CHECK-NEXT: return

// -----

// Two permutations are one; one and its inverse are none.
func.func @main(%x: tensor<?x2x3xf32, [@b, 2, 3]>) -> (tensor<3x2x?xf32>, tensor<?x2x3xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<?x2x3xf32, [@b, 2, 3]>) -> tensor<2x3x?xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<2x3x?xf32>) -> tensor<3x2x?xf32>
  %2 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<2x3x?xf32>) -> tensor<?x2x3xf32>
  return %1, %2 : tensor<3x2x?xf32>, tensor<?x2x3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg0, dims = [2, 1, 0]
// CHECK-NEXT: return %[[T]], %arg0

// -----

// A broadcast that only inserts a size of 1 is a reshape.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?x1x4xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %rest = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
  %s = stablehlo.concatenate %n1, %rest, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 2] : (tensor<?x4xf32, [@b, 4]>, tensor<3xi32>) -> tensor<?x1x4xf32>
  return %0 : tensor<?x1x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: broadcast
// CHECK: stablehlo.dynamic_reshape %arg0, {{.*}} -> tensor<?x1x4xf32, [@b, 1, 4]>

// -----

// One that repeats stays, with static sizes once they are known.
func.func @main(%x: tensor<4xf32>) -> tensor<?x4xf32> {
  %s = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>

// -----

// A gather of one slice at constant places is a slice.
func.func @main(%x: tensor<8x?xf32, [8, @b]>) -> tensor<2x?xf32> {
  %start = stablehlo.constant dense<[3]> : tensor<1xi32>
  %two = stablehlo.constant dense<[2]> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<8x?xf32, [8, @b]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %sizes = stablehlo.concatenate %two, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = "stablehlo.dynamic_gather"(%x, %start, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>}> : (tensor<8x?xf32, [8, @b]>, tensor<1xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: gather
// CHECK-DAG: %[[FROM:.*]] = "disc.shape"() {dims = [3, 0]}
// CHECK-DAG: %[[TO:.*]] = "disc.shape"() {dims = [5, @b]}
// CHECK: stablehlo.real_dynamic_slice %arg0, %[[FROM]], %[[TO]]

// -----

// One that could reach past the end stays a gather, which moves it inside.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<2x4xf32> {
  %start = stablehlo.constant dense<[3]> : tensor<1xi32>
  %0 = "stablehlo.gather"(%x, %start) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, slice_sizes = array<i64: 2, 4>}> : (tensor<?x4xf32, [@b, 4]>, tensor<1xi32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.gather"(%arg0

// -----

// A slice that is as large as what it is taken from is all of it, however its bounds are computed.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %n = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %end = stablehlo.concatenate %n, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.real_dynamic_slice %x, %zero, %end, %one : (tensor<?x4xf32, [@b, 4]>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0

// -----

// One that is smaller stays.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %less = stablehlo.constant dense<1> : tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %n = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %k = stablehlo.subtract %n, %less : tensor<1xi32>
  %end = stablehlo.concatenate %k, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.real_dynamic_slice %x, %zero, %end, %one : (tensor<?x4xf32, [@b, 4]>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.real_dynamic_slice %arg0

// -----

// Two reversals are one, of the axes that only one of them reverses; a reversal and itself are none.
func.func @main(%x: tensor<?x2x3xf32, [@b, 2, 3]>) -> (tensor<?x2x3xf32>, tensor<?x2x3xf32>) {
  %0 = stablehlo.reverse %x, dims = [0, 1] : tensor<?x2x3xf32, [@b, 2, 3]>
  %1 = stablehlo.reverse %0, dims = [1, 2] : tensor<?x2x3xf32, [@b, 2, 3]>
  %2 = stablehlo.reverse %0, dims = [1, 0] : tensor<?x2x3xf32, [@b, 2, 3]>
  %3 = stablehlo.convert %1 : (tensor<?x2x3xf32, [@b, 2, 3]>) -> tensor<?x2x3xf32>
  %4 = stablehlo.convert %2 : (tensor<?x2x3xf32, [@b, 2, 3]>) -> tensor<?x2x3xf32>
  return %3, %4 : tensor<?x2x3xf32>, tensor<?x2x3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = stablehlo.reverse %arg0, dims = [0, 2]
// CHECK-NEXT: return %[[R]], %arg0

// -----

// A reversal of something else stays.
func.func @main(%x: tensor<?x2xf32, [@b, 2]>) -> tensor<2x?xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x2xf32, [@b, 2]>) -> tensor<2x?xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<2x?xf32>
  return %1 : tensor<2x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg0
// CHECK-NEXT: stablehlo.reverse %[[T]], dims = [0]
