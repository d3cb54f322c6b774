// RUN: opt --stage simplify --target=cuda:sm_90 --split-input-file %s | filecheck %s

// NCCL adds, as f32. What it has not, a maximum of floats, is gathered and combined; the same arrays are gathered once.
// Along another axis than the first there is a transpose.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:\w+]]: tensor<?x4xf16, [@n, 4]>)
// CHECK: %[[WIDE:\w+]] = stablehlo.convert %[[X]] : (tensor<?x4xf16, [@n, 4]>) -> tensor<?x4xf32, [@n, 4]>
// CHECK-NEXT: %[[SUM:\w+]]:2 = stablehlo.custom_call @collective_all_reduce(%[[WIDE]])
// CHECK-SAME: parameters = {reduction = 0 : i64}
// CHECK-NEXT: %[[FIRST:\w+]] = stablehlo.convert %[[SUM]]#0
// CHECK: %[[ONE:\w+]] = stablehlo.dynamic_reshape %[[X]], {{.*}} -> tensor<1x?x4xf16, [1, @n, 4]>
// CHECK-NEXT: %[[ALL:\w+]]:2 = stablehlo.custom_call @collective_all_gather(%[[ONE]])
// CHECK-SAME: groups = [array<i64: 0, 1>], operands = [f16], parameters = {axis = 0 : i64}
// CHECK-SAME: -> (tensor<2x?x4xf16, [2, @n, 4]>, tensor<0xui8>)
// CHECK: stablehlo.real_dynamic_slice %[[ALL]]#0
// CHECK: stablehlo.real_dynamic_slice %[[ALL]]#0
// CHECK: %[[MOST:\w+]] = stablehlo.maximum
// CHECK-NEXT: %[[TURNED:\w+]] = stablehlo.transpose %[[ALL]]#0, dims = [1, 0, 2]
// CHECK: %[[JOINED:\w+]] = stablehlo.dynamic_reshape %[[TURNED]], {{.*}} -> tensor<?x8xf16, [@n, 8]>
// CHECK-NEXT: return %[[FIRST]], %[[MOST]], %[[JOINED]]
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?x4xf16, [@n, 4]>) -> (tensor<?x4xf16>, tensor<?x4xf16>, tensor<?x8xf16>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f16>, %b: tensor<f16>):
      %s = stablehlo.add %a, %b : tensor<f16>
      stablehlo.return %s : tensor<f16>
    }) : (tensor<?x4xf16, [@n, 4]>) -> tensor<?x4xf16>
    %1 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f16>, %b: tensor<f16>):
      %s = stablehlo.maximum %a, %b : tensor<f16>
      stablehlo.return %s : tensor<f16>
    }) : (tensor<?x4xf16, [@n, 4]>) -> tensor<?x4xf16>
    %2 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<?x4xf16, [@n, 4]>) -> tensor<?x8xf16>
    return %0, %1, %2 : tensor<?x4xf16>, tensor<?x4xf16>, tensor<?x8xf16>
  }
}

// -----

// Where groups have different sizes, NCCL has to combine.
// CHECK: error: 1 unsupported construct(s)
// CHECK-NEXT: stablehlo.all_reduce on f32 at line {{[0-9]+}}: on GPUs, groups of different sizes are not combined by maximum
module attributes {disc.participants = 3 : i64, mhlo.num_replicas = 3 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
