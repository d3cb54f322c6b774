// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,func.func(cse),fuse-attention,reserve-partials' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// Three queries: for each part of the keys its largest element, the sum of its weights, and what they weigh.
func.func @main(%q: tensor<3x8xf16>, %k: tensor<?x8xf16, [@k, 8]>, %v: tensor<?x8xf16, [@k, 8]>) -> tensor<3x8xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %low = stablehlo.constant dense<0xFC00> : tensor<f16>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<3x8xf16>, tensor<?x8xf16, [@k, 8]>) -> tensor<3x?xf16, [3, @k]>
  %n = stablehlo.get_dimension_size %s, dim = 0 : (tensor<3x?xf16, [3, @k]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %s, dim = 1 : (tensor<3x?xf16, [3, @k]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %l = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<3x?xf16, [3, @k]>, tensor<f16>) -> tensor<3xf16>
  %ls = stablehlo.dynamic_broadcast_in_dim %l, %d, dims = [0] : (tensor<3xf16>, tensor<2xi32>) -> tensor<3x?xf16, [3, @k]>
  %x = stablehlo.subtract %s, %ls : tensor<3x?xf16, [3, @k]>
  %e = stablehlo.exponential %x : tensor<3x?xf16, [3, @k]>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x?xf16, [3, @k]>, tensor<f16>) -> tensor<3xf16>
  %ts = stablehlo.dynamic_broadcast_in_dim %t, %d, dims = [0] : (tensor<3xf16>, tensor<2xi32>) -> tensor<3x?xf16, [3, @k]>
  %w = stablehlo.divide %e, %ts : tensor<3x?xf16, [3, @k]>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<3x?xf16, [3, @k]>, tensor<?x8xf16, [@k, 8]>) -> tensor<3x8xf16>
  return %o : tensor<3x8xf16>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[CALL:.*]]:4 = call @attention_0({{.*}} -> (tensor<3x8xf16>, tensor<?x3xf32, [@"min(264, floordiv(k, 128))*min(1, floordiv(min(264, floordiv(k, 128)), 2))", 3]>, tensor<?x3xf32, {{.*}}>, tensor<?x3x8xf32, {{.*}}>)
// CHECK: return %[[CALL]]#0
// CHECK: func.func private @attention_0({{.*}} partials = 3 : i64

// -----
// As many queries as there may be.
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
// CHECK: call @attention_0({{.*}}[@"min(264, floordiv(k, 128))*min(1, floordiv(16, max(1, q)))
// CHECK: partials = 3 : i64

// -----
// More queries than that.
func.func @main(%q: tensor<17x8xf16>, %k: tensor<?x8xf16, [@k, 8]>, %v: tensor<?x8xf16, [@k, 8]>) -> tensor<17x8xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %low = stablehlo.constant dense<0xFC00> : tensor<f16>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<17x8xf16>, tensor<?x8xf16, [@k, 8]>) -> tensor<17x?xf16, [17, @k]>
  %n = stablehlo.get_dimension_size %s, dim = 0 : (tensor<17x?xf16, [17, @k]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %s, dim = 1 : (tensor<17x?xf16, [17, @k]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %l = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<17x?xf16, [17, @k]>, tensor<f16>) -> tensor<17xf16>
  %ls = stablehlo.dynamic_broadcast_in_dim %l, %d, dims = [0] : (tensor<17xf16>, tensor<2xi32>) -> tensor<17x?xf16, [17, @k]>
  %x = stablehlo.subtract %s, %ls : tensor<17x?xf16, [17, @k]>
  %e = stablehlo.exponential %x : tensor<17x?xf16, [17, @k]>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<17x?xf16, [17, @k]>, tensor<f16>) -> tensor<17xf16>
  %ts = stablehlo.dynamic_broadcast_in_dim %t, %d, dims = [0] : (tensor<17xf16>, tensor<2xi32>) -> tensor<17x?xf16, [17, @k]>
  %w = stablehlo.divide %e, %ts : tensor<17x?xf16, [17, @k]>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<17x?xf16, [17, @k]>, tensor<?x8xf16, [@k, 8]>) -> tensor<17x8xf16>
  return %o : tensor<17x8xf16>
}
// CHECK-LABEL: func.func @main
// CHECK: call @attention_0
// CHECK-NOT: partials
