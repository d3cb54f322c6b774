// RUN: opt --pass-pipeline='annotate,slice-gathers' --split-input-file %s | filecheck %s

// Every second element, from the second on.
func.func @main(%x: tensor<?x?xf32, [@b, @"2*s + 2"]>) -> tensor<?x?xf32> {
  %n = "disc.shape"() {dims = [@"s + 1"]} : () -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, [@"s + 1"]>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %twos = stablehlo.dynamic_broadcast_in_dim %two, %n, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32, [@"s + 1"]>
  %ones = stablehlo.dynamic_broadcast_in_dim %one, %n, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32, [@"s + 1"]>
  %even = stablehlo.multiply %twos, %i : tensor<?xi32, [@"s + 1"]>
  %odd = stablehlo.add %even, %ones : tensor<?xi32, [@"s + 1"]>
  %sizes = "disc.shape"() {dims = [@b, 1]} : () -> tensor<2xi32>
  %g = "stablehlo.dynamic_gather"(%x, %odd, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>}> : (tensor<?x?xf32, [@b, @"2*s + 2"]>, tensor<?xi32, [@"s + 1"]>, tensor<2xi32>) -> tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: gather
// CHECK: "disc.shape"() {dims = [0, 1]}
// CHECK: "disc.shape"() {dims = [@b, @"2*s + 2"]}
// CHECK: "disc.shape"() {dims = [1, 2]}
// CHECK: stablehlo.real_dynamic_slice %arg0

// -----

// One further, the last position lies outside and is clamped.
func.func @main(%x: tensor<?x?xf32, [@b, @"2*s"]>) -> tensor<?x?xf32> {
  %n = "disc.shape"() {dims = [@s]} : () -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, [@s]>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %twos = stablehlo.dynamic_broadcast_in_dim %two, %n, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32, [@s]>
  %even = stablehlo.multiply %twos, %i : tensor<?xi32, [@s]>
  %far = stablehlo.add %even, %twos : tensor<?xi32, [@s]>
  %sizes = "disc.shape"() {dims = [@b, 1]} : () -> tensor<2xi32>
  %g = "stablehlo.dynamic_gather"(%x, %far, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>}> : (tensor<?x?xf32, [@b, @"2*s"]>, tensor<?xi32, [@s]>, tensor<2xi32>) -> tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: slice
// CHECK: stablehlo.dynamic_gather
