// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,func.func(cse),fuse-attention' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// On a GPU rows come in pieces, where they are a softmax: there is one result, and no scratch.
func.func @main(%q: tensor<?x8xf16, [@q, 8]>, %k: tensor<?x8xf16, [@k, 8]>, %v: tensor<?x8xf16, [@k, 8]>) -> tensor<?x8xf16, [@q, 8]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %low = stablehlo.constant dense<0xFC00> : tensor<f16>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<?x8xf16, [@q, 8]>, tensor<?x8xf16, [@k, 8]>) -> tensor<?x?xf16, [@q, @k]>
  %n = stablehlo.get_dimension_size %s, dim = 0 : (tensor<?x?xf16, [@q, @k]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %s, dim = 1 : (tensor<?x?xf16, [@q, @k]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %l = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<?x?xf16, [@q, @k]>, tensor<f16>) -> tensor<?xf16, [@q]>
  %ls = stablehlo.dynamic_broadcast_in_dim %l, %d, dims = [0] : (tensor<?xf16, [@q]>, tensor<2xi32>) -> tensor<?x?xf16, [@q, @k]>
  %x = stablehlo.subtract %s, %ls : tensor<?x?xf16, [@q, @k]>
  %e = stablehlo.exponential %x : tensor<?x?xf16, [@q, @k]>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf16, [@q, @k]>, tensor<f16>) -> tensor<?xf16, [@q]>
  %ts = stablehlo.dynamic_broadcast_in_dim %t, %d, dims = [0] : (tensor<?xf16, [@q]>, tensor<2xi32>) -> tensor<?x?xf16, [@q, @k]>
  %w = stablehlo.divide %e, %ts : tensor<?x?xf16, [@q, @k]>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<?x?xf16, [@q, @k]>, tensor<?x8xf16, [@k, 8]>) -> tensor<?x8xf16, [@q, 8]>
  return %o : tensor<?x8xf16, [@q, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[O:.*]] = call @attention_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return %[[O]] :
// CHECK: func.func private @[[ROWS:row_reduce_1]]({{.*}} attributes {disc.fusion = #disc.fusion<"row_reduce", {collapsed, columns = 1 : i64}>} {
// CHECK: func.func private @attention_0({{.*}} attributes {disc.fusion = #disc.fusion<"attention", {online, problem = {{.*}}, row_operands = array<i64: -1>, rows = @[[ROWS]]}>} {
// CHECK-NEXT: %[[S:.*]] = call @dot_0(%arg0, %arg1)
// CHECK-NEXT: %[[W:.*]] = call @[[ROWS]](%[[S]])
// CHECK-NEXT: call @dot_2(%[[W]], %arg2)

// -----

// Nothing is subtracted: exponentials of scores that came before could not be scaled.
func.func @main(%q: tensor<?x8xf32, [@q, 8]>, %k: tensor<?x8xf32, [@k, 8]>, %v: tensor<?x8xf32, [@k, 8]>) -> tensor<?x8xf32, [@q, 8]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<?x8xf32, [@q, 8]>, tensor<?x8xf32, [@k, 8]>) -> tensor<?x?xf32, [@q, @k]>
  %e = stablehlo.exponential %s : tensor<?x?xf32, [@q, @k]>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, [@q, @k]>, tensor<f32>) -> tensor<?xf32, [@q]>
  %n = stablehlo.get_dimension_size %s, dim = 0 : (tensor<?x?xf32, [@q, @k]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %s, dim = 1 : (tensor<?x?xf32, [@q, @k]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %t, %d, dims = [0] : (tensor<?xf32, [@q]>, tensor<2xi32>) -> tensor<?x?xf32, [@q, @k]>
  %w = stablehlo.divide %e, %b : tensor<?x?xf32, [@q, @k]>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@q, @k]>, tensor<?x8xf32, [@k, 8]>) -> tensor<?x8xf32, [@q, 8]>
  return %o : tensor<?x8xf32, [@q, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: call @dot_0
// CHECK: call @row_reduce_1
// CHECK: call @dot_2
// CHECK-NOT: "attention"
