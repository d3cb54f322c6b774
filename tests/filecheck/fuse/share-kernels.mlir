// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,func.func(cse),share-kernels' --split-input-file %s | filecheck %s

// Four branches that differ in their factor: it is passed.
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %r = "stablehlo.case"(%i) ({
    %c = stablehlo.constant dense<0.5> : tensor<8xf32>
    %y = stablehlo.multiply %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<1.5> : tensor<8xf32>
    %y = stablehlo.multiply %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<2.5> : tensor<8xf32>
    %y = stablehlo.multiply %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<3.5> : tensor<8xf32>
    %y = stablehlo.multiply %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[A:.*]] = stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-DAG: %[[D:.*]] = stablehlo.constant dense<3.500000e+00> : tensor<f32>
// CHECK: call @loop_0(%arg1, %[[A]])
// CHECK: call @loop_1(%arg1, %
// CHECK: call @loop_2(%arg1, %
// CHECK: call @loop_3(%arg1, %[[D]])
// CHECK: func.func private @loop_0(%arg0: tensor<8xf32>, %arg1: tensor<f32>)
// CHECK-NEXT: %[[C:.*]] = stablehlo.broadcast_in_dim %arg1, dims = []
// CHECK-NEXT: %[[Y:.*]] = stablehlo.multiply %arg0, %[[C]]
// CHECK-NEXT: stablehlo.tanh %[[Y]]

// -----

// A divisor stays: code for it depends on it.
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %r = "stablehlo.case"(%i) ({
    %c = stablehlo.constant dense<0.5> : tensor<8xf32>
    %y = stablehlo.divide %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<1.5> : tensor<8xf32>
    %y = stablehlo.divide %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<2.5> : tensor<8xf32>
    %y = stablehlo.divide %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }, {
    %c = stablehlo.constant dense<3.5> : tensor<8xf32>
    %y = stablehlo.divide %x, %c : tensor<8xf32>
    %z = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %z : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.constant
// CHECK: call @loop_0(%arg1)
// CHECK: call @loop_3(%arg1)
// CHECK: func.func private @loop_0(%arg0: tensor<8xf32>)
// CHECK: stablehlo.constant dense<5.000000e-01>
