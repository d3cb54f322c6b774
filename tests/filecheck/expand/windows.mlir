// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Windows that are constants are attributes of a `reduce_window`, whose body is the called function's.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@"floordiv(n, 2)"]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-NOT: custom_call
// CHECK: %[[REDUCE_WINDOW:\w+]] = "stablehlo.reduce_window"(%[[A]],
// CHECK-SAME: %[[CONSTANT]]) <{base_dilations = array<i64: 1>, padding = dense<[[1, 0]]>
// CHECK-SAME: : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 3>,
// CHECK-SAME: window_strides = array<i64: 2>}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[E]], %[[E2]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@"floordiv(n, 2)"]>
// CHECK-NEXT: return %[[REDUCE_WINDOW]] : tensor<?xf32, [@"floordiv(n, 2)"]>
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %w = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.constant dense<2> : tensor<1xi32>
  %p = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %s, %o, %o, %p)
      {called_computations = [@larger]}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window that is an argument is an attribute of symbols.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<1xi32>) -> tensor<?xf32, [@"max(0, - n0 + n + 1)"]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-NOT: custom_call
// CHECK: "disc.bind"(%[[B]]) {symbols = [@n0]} : (tensor<1xi32>) -> ()
// CHECK-NEXT: %[[REDUCE_WINDOW:\w+]] = "stablehlo.reduce_window"(%[[A]],
// CHECK-SAME: %[[CONSTANT]]) <{base_dilations = array<i64: 1>, padding = dense<0>
// CHECK-SAME: : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 1>,
// CHECK-SAME: window_strides = array<i64: 1>}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[E]], %[[E2]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CHECK-NEXT: }) {disc.window = #disc.window<{base_dilation = [1], dilation = [1], high = [0], low = [0], size = [@n0],
// CHECK-SAME: stride = [1]}>} : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@"max(0, - n0 + n + 1)"]>
// CHECK-NEXT: return %[[REDUCE_WINDOW]] : tensor<?xf32, [@"max(0, - n0 + n + 1)"]>
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>, %w: tensor<1xi32>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %s = stablehlo.constant dense<1> : tensor<1xi32>
  %p = stablehlo.constant dense<0> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %s, %o, %o, %p)
      {called_computations = [@larger]}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window of the whole axis has one element as its result.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<1xf32> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-NOT: custom_call
// CHECK: %[[REDUCE_WINDOW:\w+]] = "stablehlo.reduce_window"(%[[A]],
// CHECK-SAME: %[[CONSTANT]]) <{base_dilations = array<i64: 1>, padding = dense<0>
// CHECK-SAME: : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 1>,
// CHECK-SAME: window_strides = array<i64: 1>}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[E]], %[[E2]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CHECK-NEXT: }) {disc.window = #disc.window<{base_dilation = [1], dilation = [1], high = [0], low = [0], size = [@n],
// CHECK-SAME: stride = [1]}>} : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT: return %[[REDUCE_WINDOW]] : tensor<1xf32>
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %w = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.constant dense<1> : tensor<1xi32>
  %p = stablehlo.constant dense<0> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %s, %o, %o, %p)
      {called_computations = [@larger]}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A call has to name its body.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @stablehlo.dynamic_reduce_window at line {{[0-9]+}}: a custom call without its computation has no lowering
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %w = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.constant dense<2> : tensor<1xi32>
  %p = stablehlo.constant dense<0> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %s, %o, %o, %p) {}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A call of another name is no windowed reduction.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @example.reduce_window at line {{[0-9]+}}: this custom call has no lowering; register a native function for it with shlo_disc.register_custom_call
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %w = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.constant dense<2> : tensor<1xi32>
  %p = stablehlo.constant dense<0> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @example.reduce_window(%x, %i, %w, %s, %o, %o, %p)
      {called_computations = [@larger]}
      : (tensor<?xf32, [@n]>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window that is an attribute stays as it is.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@"max(0, n - 2)"]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK: %[[REDUCE_WINDOW:\w+]] = "stablehlo.reduce_window"(%[[A]],
// CHECK-SAME: %[[CONSTANT]]) <{window_dimensions = array<i64: 3>}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[E]], %[[E2]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32, [@"max(0, n - 2)"]>
// CHECK-NEXT: return %[[REDUCE_WINDOW]] : tensor<?xf32, [@"max(0, n - 2)"]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
